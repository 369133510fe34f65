#include "tests/simulation/certificate_rollouts/rollouts_in_a_row.h"

#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <string>

namespace verger::sim {
namespace {

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return text == nullptr ? otherwise : std::stoull(text);
}

std::vector<Rollout> row_of(std::uint64_t seed, std::uint64_t count) {
  RolloutsInARow row(seed);
  row.begin();
  std::vector<Rollout> out;
  while (out.size() < count) {
    out.push_back(row.roll());
  }
  return out;
}

TEST(CertificateRolloutsInARow, NoneIsHalfWay) {
  const auto seed = number("VERGER_SEED", 1);
  const auto count = number("VERGER_ROLLOUTS", 100);
  std::map<std::string, std::map<std::string, int>> table;
  int half_way = 0;
  for (const auto& each : row_of(seed, count)) {
    ++table[std::string(kMishaps.at(static_cast<std::size_t>(each.mishap)))]
           [each.struck || each.mishap == Mishap::kNone ? each.outcome : "ended before it"];
    half_way += each.violations.empty() ? 0 : 1;
    for (const auto& violation : each.violations) {
      ADD_FAILURE() << violation;
    }
  }
  for (const auto& [mishap, outcomes] : table) {
    std::string text;
    for (const auto& [outcome, times] : outcomes) {
      text += fmt::format(" {} {}", outcome, times);
    }
    fmt::print("{}:{}\n", mishap, text);
  }
  fmt::print("{} rollouts in a row, seed {}: {} half-way\n", count, seed, half_way);
  fmt::print("replay: VERGER_SEED={} VERGER_ROLLOUTS={} {}\n", seed, count,
             "build/dev/bin/simulation_certificate_rollouts");
}

TEST(CertificateRolloutsInARow, ANodeThatIsNotRestoredIsNoticed) {
  RolloutsInARow row(1, /*broken=*/true);
  row.begin();
  bool noticed = false;
  for (int i = 0; i < 30 && !noticed; ++i) {
    noticed = !row.roll().violations.empty();
  }
  EXPECT_TRUE(noticed);
}

TEST(CertificateRolloutsInARow, TheSameSeedGivesTheSameRow) {
  const auto first = row_of(7, 5);
  EXPECT_EQ(first, row_of(7, 5));
  EXPECT_NE(first, row_of(8, 5));
}

}  // namespace
}  // namespace verger::sim
