#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/random.h"
#include "tests/unit/controller_operations/certificate_rollout.h"

namespace verger::sim {

/// What happens in the middle of a rollout.
enum class Mishap : std::uint8_t {
  kNone,
  kControllerKilled,
  kControllerKilledTwice,
  kControllerAwayForLong,  ///< for longer than the window
  kAgentAway,
  kNodeAway,
  kMachineAway,  ///< node and agent
  kMessagesLost,
  kReloadFails,
  kReloadLies,
  kDiskFull,
  kPeerRefuses,
  kPaused,
  kCancelled,
  kSkipped,
};
inline constexpr std::array<std::string_view, 15> kMishaps{"nothing",
                                                           "controller killed",
                                                           "controller killed twice",
                                                           "controller away for long",
                                                           "agent away",
                                                           "node away",
                                                           "machine away",
                                                           "messages lost",
                                                           "a reload fails",
                                                           "a reload lies",
                                                           "a disk is full",
                                                           "a peer refuses",
                                                           "paused by hand",
                                                           "cancelled by hand",
                                                           "a node is skipped"};

struct Rollout {
  Mishap mishap = Mishap::kNone;
  bool new_authority = false;
  bool by_request = false;  ///< source csr; else path
  std::int64_t after_events = 0;
  bool struck = false;  ///< it took effect before the rollout had ended
  std::string outcome{};
  std::int64_t events = 0;
  /// Empty: every node has the new certificates, or every node the old ones, as the run says, and
  /// each accepts each other; and at no moment was there a pair that did not.
  std::vector<std::string> violations{};
  friend bool operator==(const Rollout&, const Rollout&) = default;
};

/// One cluster, one journal, and one rollout after the other, each with a mishap by chance: the
/// real controller on virtual time, three TLS nodes and their agents as models with real keys and
/// certificates. The same seed gives the same row.
class RolloutsInARow : public test::CertificateRollout {
 public:
  /// `broken`: what n2 has to restore it does not, to see that this is noticed.
  explicit RolloutsInARow(std::uint64_t seed, bool broken = false)
      : random_(seed), broken_(broken) {}
  void TestBody() override {}
  void begin() { CertificateRollout::begin(); }
  /// The next one, to its end.
  Rollout roll();

 private:
  planner::Policy choose(Rollout& rollout);
  void strike(const Rollout& rollout, const std::string& run);
  void heal();
  void look(Rollout& rollout);
  void check_pairs(Rollout& rollout, const char* when);
  void check_end(Rollout& rollout, const std::string& run);
  std::string any_node() { return fmt_name(static_cast<int>(random_.below(3)) + 1); }
  std::chrono::milliseconds between(std::int64_t least_ms, std::int64_t most_ms) {
    return std::chrono::milliseconds(
        least_ms + static_cast<std::int64_t>(
                       random_.below(static_cast<std::uint64_t>(most_ms - least_ms + 1))));
  }
  void pass(std::chrono::milliseconds time);

  SeededRandom random_;
  bool broken_;
  int number_ = 0;
  test::FakeAuthority offered_{};
  int changes_seen_ = 0;
  int restores_seen_ = 0;
  Files last_of_n2_{};
  std::string struck_node_{};
};

}  // namespace verger::sim
