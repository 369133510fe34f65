#include <gtest/gtest.h>
#include <iostream>

#include "tests/simulation/full/simulation.h"

namespace verger::sim {
namespace {

/// How many runs a broken build gets to give itself away.
constexpr std::uint64_t kRunsOfABrokenBuild = 40;

void report(std::uint64_t seed, const RunResult& result) {
  for (const auto& violation : result.violations) {
    ADD_FAILURE() << "seed " << seed << ": " << violation
                  << "\nreplay: ./dev sim --kind full --runs 1 --seed " << seed << " --trace";
  }
}

/// Seeds of one test: 1,000 in all, in pieces that run side by side.
constexpr std::uint64_t kSeeds = 125;

class FullSimulation : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(FullSimulation, HoldsUnderFaults) {
  Summary summary;
  std::uint64_t violating = 0;
  const auto first = GetParam();
  for (std::uint64_t seed = first; seed < first + kSeeds; ++seed) {
    const auto result = simulate({.seed = seed});
    summary.add(result);
    violating += result.violations.empty() ? 0 : 1;
    for (const auto& violation : result.violations) {
      std::cout << "seed " << seed << ": " << violation
                << "\nreplay: ./dev sim --kind full --runs 1 --seed " << seed << " --trace\n";
    }
  }
  EXPECT_EQ(violating, 0U);
  summary.print(std::cout);
  EXPECT_GT(summary.outcomes["done"], summary.runs / 2) << "too few runs get through";
  EXPECT_GT(summary.acknowledged_writes, summary.runs);
  for (const auto* fault : {"request lost",
                            "answer lost",
                            "message late",
                            "request twice",
                            "link broken",
                            "message stopped by a partition",
                            "node killed",
                            "node power cut",
                            "controller killed",
                            "controller power cut",
                            "power cut with loss of data",
                            "crash at failpoint",
                            "crash in disk operation",
                            "node paused",
                            "controller paused",
                            "write refused by a full disk",
                            "sync took long",
                            "clock step",
                            "agent gone",
                            "foreign scavenge",
                            "chunk switched online",
                            "call of a switch lost",
                            "answer of a switch lost",
                            "election out of turn"}) {
    EXPECT_GT(summary.faults[fault], 0U) << fault << " never took effect";
  }
  // Each run has one planned move; more of them come from faults.
  EXPECT_GT(summary.faults["leader changed"], summary.runs);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FullSimulation, ::testing::Range<std::uint64_t>(1, 1001, kSeeds));

TEST(FullSimulationAlone, IsDoneWithoutFaults) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const auto result = simulate({.seed = seed, .faults = false});
    report(seed, result);
    EXPECT_EQ(result.state, "done") << result.reason;
    EXPECT_GT(result.acknowledged_writes, 10U);
  }
}

TEST(FullSimulationAlone, SameSeedGivesTheSameTrace) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    const auto first = simulate({.seed = seed});
    const auto second = simulate({.seed = seed});
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.trace_lines, second.trace_lines);
    EXPECT_EQ(first.events, second.events);
  }
  EXPECT_NE(simulate({.seed = 1}).trace_hash, simulate({.seed = 2}).trace_hash);
}

class BrokenBuild : public ::testing::TestWithParam<std::string_view> {};

TEST_P(BrokenBuild, IsCaught) {
  std::uint64_t caught = 0;
  std::string first;
  for (std::uint64_t seed = 1; seed <= kRunsOfABrokenBuild && caught == 0; ++seed) {
    const auto result = simulate({.seed = seed, .broken = std::string(GetParam())});
    caught += result.violations.size();
    if (caught > 0) {
      first = result.violations.front();
    }
  }
  EXPECT_GT(caught, 0U) << GetParam() << " was not noticed in " << kRunsOfABrokenBuild << " runs";
  std::cout << GetParam() << ": " << first << '\n';
}

INSTANTIATE_TEST_SUITE_P(Broken, BrokenBuild, ::testing::ValuesIn(broken_builds()),
                         [](const auto& broken) {
                           std::string name(broken.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace verger::sim
