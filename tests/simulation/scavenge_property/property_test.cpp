// Random workloads against the model. VERGER_PROPERTY_RUNS says how many (2,000),
// VERGER_PROPERTY_SEED where their seeds begin (1). A failure names its seed;
// VERGER_PROPERTY_RUNS=1 with that seed and
// --gtest_filter=*/0 repeats it.
#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/simulation/scavenge_property/workload.h"

namespace verger::test {
namespace {

constexpr int kShards = 8;

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  std::uint64_t number = otherwise;
  if (text != nullptr) {
    const std::string_view digits(text);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
  }
  return number;
}

class ScavengeProperty : public testing::TestWithParam<int> {};

TEST_P(ScavengeProperty, HoldsForRandomWorkloads) {
  const auto runs = setting("VERGER_PROPERTY_RUNS", 2000);
  const auto first = setting("VERGER_PROPERTY_SEED", 1);
  WorkloadCounts counts;
  std::uint64_t workloads = 0;
  for (auto n = static_cast<std::uint64_t>(GetParam()); n < runs && !HasFailure(); n += kShards) {
    const auto seed = first + n;
    SCOPED_TRACE(fmt::format("VERGER_PROPERTY_RUNS=1 VERGER_PROPERTY_SEED={}", seed));
    try {
      Workload(seed, counts).run();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    ++workloads;
  }
  const auto text = fmt::format(
      "{} workloads: {} scavenges ({} with collisions, {} previewed), {} crashes, {} stops, {} "
      "chunks executed, {} groups merged, {} records and {} index entries removed",
      workloads, counts.scavenges, counts.collisions, counts.previews, counts.crashes, counts.stops,
      counts.chunks_executed, counts.groups_merged, counts.records_discarded,
      counts.entries_discarded);
  RecordProperty("workloads", text);
  std::cout << text << '\n';
  if (workloads >= 100) {
    EXPECT_GT(counts.collisions, 0);
    EXPECT_GT(counts.previews, 0);
    EXPECT_GT(counts.crashes, 0);
    EXPECT_GT(counts.stops, 0);
    EXPECT_GT(counts.groups_merged, 0);
    EXPECT_GT(counts.records_discarded, 0U);
    EXPECT_GT(counts.entries_discarded, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, ScavengeProperty, testing::Range(0, kShards));

}  // namespace
}  // namespace verger::test
