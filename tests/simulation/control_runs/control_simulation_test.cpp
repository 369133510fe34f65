#include <gtest/gtest.h>
#include <iostream>

#include "tests/simulation/control/simulation.h"
#include "tests/simulation/control/tournament.h"

namespace verger::sim {
namespace {

/// How many runs a broken build gets to give itself away.
constexpr std::uint64_t kRunsOfABrokenBuild = 2'000;

/// Seeds of one test: 44,000 in all, in pieces that run side by side.
constexpr std::uint64_t kSeeds = 4'000;
constexpr std::uint64_t kAllSeeds = 44'000;

class ControlSimulation : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ControlSimulation, HoldsUnderFaults) {
  Summary summary;
  std::uint64_t violating = 0;
  const auto first = GetParam();
  for (std::uint64_t seed = first; seed < first + kSeeds; ++seed) {
    const auto result = simulate_control({.seed = seed});
    summary.add(result);
    violating += result.violations.empty() ? 0 : 1;
    for (const auto& violation : result.violations) {
      std::cout << "seed " << seed << ": " << violation
                << "\nreplay: ./dev sim --kind control --runs 1 --seed " << seed << " --trace\n";
    }
  }
  EXPECT_EQ(violating, 0U);
  summary.print(std::cout);
  EXPECT_GT(summary.outcomes["done"], summary.runs / 2) << "too few runs get through";
  for (const auto* fault :
       {"request lost", "answer lost", "message late", "request twice",
        "message stopped by a partition", "controller killed", "agent gone", "clock step",
        "election out of turn", "foreign scavenge", "write refused by a full disk",
        "another controller took over", "crash at failpoint", "scavenge ended with an error",
        "operation late, and the run paused meanwhile",
        "power cut before a scavenge was reported"}) {
    EXPECT_GT(summary.faults[fault], 0U) << fault << " never took effect";
  }
  for (const auto what : row::kAll) {
    EXPECT_GT(summary.rows[std::string(what)], 0U) << what << ": the tournament's row was not met";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ControlSimulation,
                         ::testing::Range<std::uint64_t>(1, kAllSeeds + 1, kSeeds));

TEST(ControlSimulationAlone, IsDoneWithoutFaults) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const auto result = simulate_control({.seed = seed, .faults = false});
    EXPECT_TRUE(result.violations.empty()) << "seed " << seed << ": " << result.violations.front();
    EXPECT_EQ(result.state, "done") << "seed " << seed << ": " << result.reason;
  }
}

TEST(ControlSimulationAlone, SameSeedGivesTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const auto first = simulate_control({.seed = seed});
    const auto second = simulate_control({.seed = seed});
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
  }
  EXPECT_NE(simulate_control({.seed = 1}).trace_hash, simulate_control({.seed = 2}).trace_hash);
}

class BrokenControlBuild : public ::testing::TestWithParam<std::string_view> {};

TEST_P(BrokenControlBuild, IsCaught) {
  std::string first;
  std::uint64_t seed = 1;
  for (; seed <= kRunsOfABrokenBuild && first.empty(); ++seed) {
    const auto result = simulate_control({.seed = seed, .broken = std::string(GetParam())});
    if (!result.violations.empty()) {
      first = result.violations.front();
    }
  }
  EXPECT_FALSE(first.empty()) << GetParam() << " was not noticed in " << kRunsOfABrokenBuild
                              << " runs";
  std::cout << GetParam() << ", run " << seed - 1 << ": " << first << '\n';
}

INSTANTIATE_TEST_SUITE_P(Broken, BrokenControlBuild, ::testing::ValuesIn(broken_control_builds()),
                         [](const auto& broken) {
                           std::string name(broken.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace verger::sim
