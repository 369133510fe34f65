#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>

#include "engine/base/random.h"
#include "tests/e2e/certificate_rollout/rollout_case.h"

/// One rollout after the other on one cluster, with a process killed at some moment of each: no
/// cluster is left half-way. VERGER_ROLLOUTS and VERGER_SEED choose how many, and which moments.
namespace verger::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return text == nullptr ? otherwise : std::stoull(text);
}

const std::uint64_t kRollouts = number_from("VERGER_ROLLOUTS", 3);

class RolloutsWithKills : public RolloutCase {
 protected:
  RolloutsWithKills()
      : RolloutCase(options_of(
            {.separate_agents = true, .role = "node", .life = seconds(300 + 60 * kRollouts)})) {}

  /// What servers read: names, modes and contents. The copies of the change before, which an agent
  /// keeps, go when the next one is staged.
  std::map<std::string, std::string> what_servers_read() const {
    std::map<std::string, std::string> out;
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      for (const auto& each :
           std::filesystem::recursive_directory_iterator(cluster_.certificates_of(i))) {
        if (each.is_regular_file() && !each.path().filename().string().contains(".verger-")) {
          out[each.path().string()] =
              fmt::format("{:o} {}", static_cast<unsigned>(each.status().permissions()),
                          file_text(each.path()));
        }
      }
    }
    return out;
  }
  void expect_whole(const nlohmann::json& run, const Serials& before,
                    const std::map<std::string, std::string>& files) {
    if (run.at("state") == "done") {
      expect_changed(run, before);
      return;
    }
    EXPECT_EQ(run.at("state"), "failed") << run.dump(1) << cluster_.logs();
    EXPECT_EQ(served(), before) << run.dump(1) << cluster_.logs();
    EXPECT_EQ(what_servers_read(), files) << run.dump(1);
    EXPECT_TRUE(eventually(seconds(10), [&] { return all_alive_everywhere(cluster_, caller_); }))
        << cluster_.logs();
  }

  /// Waits until `after` has passed, or the run has ended.
  bool ends_within(const std::string& run, milliseconds after) {
    return eventually(after, [&] {
      const auto state = cluster_.verger_json({"run", "show", run}).value("state", std::string());
      return state == "done" || state == "failed";
    });
  }
};

TEST_F(RolloutsWithKills, NoneIsHalfWay) {
  const auto seed = number_from("VERGER_SEED", 1);
  SeededRandom random(seed);
  start();
  std::map<std::string, int> table;
  for (std::uint64_t nth = 1; nth <= kRollouts; ++nth) {
    const auto before = served();
    const auto files = what_servers_read();
    const auto victim = random.below(4);
    const milliseconds after(random.below(6'000));
    SCOPED_TRACE(fmt::format("rollout {}, seed {}: {} is killed after {} ms", nth, seed,
                             victim == 3 ? "vergerd" : fmt::format("the agent of n{}", victim + 1),
                             after.count()));
    const auto id = start_rollout("house");
    const bool in_time = !ends_within(id, after);
    if (in_time) {
      (victim == 3 ? cluster_.controller() : cluster_.agent(victim)).kill();
    }
    // It starts again what has died. On a busy machine elections of milliseconds begin again and
    // again, and the run waits for a leader.
    const auto run = cluster_.wait_for_run(id, seconds(600));
    ASSERT_TRUE(run.is_object()) << "the run did not end" << cluster_.logs();
    const auto state = run.at("state").get<std::string>();
    expect_whole(run, before, files);
    ASSERT_FALSE(HasFailure());
    ++table[fmt::format("{}, {}",
                        !in_time      ? "nothing killed in time"
                        : victim == 3 ? "vergerd killed"
                                      : "an agent killed",
                        state)];
    ASSERT_EQ(cluster_.wait_until_settled(), "");
  }
  for (const auto& [what, times] : table) {
    fmt::print("{}: {}\n", what, times);
  }
  fmt::print("{} rollouts in a row, seed {}: none half-way\n", kRollouts, seed);
}

}  // namespace
}  // namespace verger::test
