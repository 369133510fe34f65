#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/policy.h"
#include "tests/simulation/control/site.h"
#include "tests/simulation/control/wall_time.h"

namespace verger::sim {

/// Something a person does while the run is under way.
struct Intent {
  std::chrono::milliseconds after{0};  ///< the start of the run
  std::string path;                    ///< below /runs/ID, or "" for the whole cluster
  std::string what;                    ///< "pause", "resume", "cancel", "skip"
  std::string body = "{}";
};

/// What is to happen in one run, but for the faults.
struct Scenario {
  SiteOptions site;
  /// Of most runs: a small cluster, little that takes time, few kinds of faults but dense ones. A
  /// second of a processor meets more faults in many such runs than in few long ones; what only
  /// large clusters and long times show is left to these.
  bool brief = false;
  Ticks start;
  std::string zone{};
  std::vector<DenyWindow> deny;
  std::string policy_yaml{};  ///< empty: none
  bool scheduled = false;     ///< the policy starts the run; else a person does
  bool days = false;          ///< a node is down for days
  /// While a stage is undone another node and its agent are dead, and nothing else is wrong.
  bool emergency = false;
  /// Of clusters without agents that show their points: the first node that has finished its
  /// scavenge loses its power before it has reported so.
  bool unreported = false;
  bool due_again = false;  ///< the policy's schedule is due every two minutes
  /// It comes when the policy has been applied.
  std::optional<std::chrono::milliseconds> due_after{};  ///< the start
  bool down_when_due = false;
  std::vector<DenyWindow> changed_deny{};  ///< hours after the policy's change
  std::string changed_yaml{};              ///< empty: it is not changed
  std::chrono::milliseconds change_after{0};
  bool clock_changes = false;  ///< of the wall, about the time of the start
  std::vector<Intent> intents{};

  [[nodiscard]] bool denied(Ticks time) const;
  [[nodiscard]] bool denied_by_change(Ticks time) const;
  [[nodiscard]] std::string describe() const;
};

/// Everything follows from the seed.
Scenario make_scenario(std::uint64_t seed);

}  // namespace verger::sim
