#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nodeagent/api/json_view.h"
#include "tests/simulation/control/scenario.h"
#include "tests/simulation/control/tournament.h"

namespace verger::sim {

/// Compares what the journal claims with what the model shows, as it happens.
class Judge {
 public:
  Judge(Site& site, const Scenario& scenario);

  void violation(std::string text);
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }

  /// Looks at what should have ended by now: from time to time.
  void look();
  /// From now on nothing fails.
  void healed() { healed_at_ = site_.world().now(); }
  /// The controller's clock is not the right one.
  void clock_stepped() { clock_was_wrong_ = true; }
  /// By the fault injector: what happens there is not the programs' doing.
  void replaced(const std::string& node) { replaced_.insert(node); }
  void at_the_end();
  /// From now on nothing is wrong but that `dead` and its agent are: what the stage did is undone
  /// within a minute.
  void expect_undo(const std::string& stage, const std::string& dead);

  /// A leader is about to lose its priority.
  std::function<void()> on_lowering;
  /// The undo of a stage has been journaled as begun.
  std::function<void(const std::string& stage)> on_undo;
  /// A step's intent has just been stored: its request is sent next.
  std::function<void(const std::string& step)> on_intended;
  /// A scavenge of ours has begun; a leader has been asked to resign.
  std::function<void(const std::string& node)> on_started;
  std::function<void(const std::string& node)> on_resigned;
  /// A scavenge of ours has reached its point, on disk; its node has reported nothing of it yet.
  std::function<void(const std::string& node)> on_reached;
  [[nodiscard]] Tournament& tournament() { return tournament_; }
  /// The controller knows which database the cluster has: another one is a stranger's.
  [[nodiscard]] bool cluster_is_identified() const { return identified_; }

  [[nodiscard]] const std::string& run_state() const { return run_state_; }
  [[nodiscard]] const std::string& run_reason() const { return run_reason_; }
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] std::uint64_t operations() const { return acted_.size(); }
  [[nodiscard]] bool cluster_paused() const { return cluster_paused_; }

 private:
  /// While hours are closed no log is read.
  void look_at_digests();

  struct Intention {
    std::string step;
    bool open = true;
    bool skipped = false;  ///< closed by a person without knowing its outcome
  };
  void journaled(const controller::JournalEvent& event);
  void run_event(const controller::JournalEvent& event);
  void operation(const std::string& node, const agent::OperationRecord& record);
  void started(const std::string& node, bool foreign);
  void resigned(const std::string& node);
  void step_done(const std::string& step, std::optional<api::JsonView> result);
  void close(const std::string& step, bool skipped);
  void check_quorum(const std::string& node, std::string_view what);
  void follow_hours(const controller::JournalEvent& event);
  /// What the comparison says of the nodes is what the model shows.
  void check_comparison(api::JsonView result);
  void check_end_of_run();
  void follow_undo(const controller::JournalEvent& event, const std::string& stage,
                   const std::string& step);
  /// Not for a run that an operator let work outside the hours. `run` may be empty.
  [[nodiscard]] bool denied_for(const std::string& run, std::chrono::milliseconds duration) const;

  Site& site_;
  const Scenario& scenario_;
  Tournament tournament_;
  std::string run_;                       ///< stream of the first one; later ones are not judged
  std::optional<Monotonic> hours_since_;  ///< they were changed last
  bool hours_are_changed_ = false;
  std::vector<std::string> violations_;
  std::set<std::string> said_;
  std::optional<Monotonic> healed_at_;
  bool clock_was_wrong_ = false;
  std::set<std::string> replaced_;

  std::map<std::string, Intention> intentions_;    ///< by operation
  std::map<std::string, std::string> open_steps_;  ///< step -> operation
  std::set<std::string> acted_;
  std::map<std::string, int> scavenges_acted_;  ///< by node
  std::map<std::string, int> scavenges_begun_;
  std::map<std::string, int> resigns_acted_;
  std::map<std::string, int> resigns_seen_;
  std::set<std::string> skipped_nodes_;
  std::string active_run_;
  std::set<std::string> ignores_hours_;  ///< runs, once the journal has who asked for it and why
  /// By host: when it finished which point.
  std::map<std::string, std::map<std::int64_t, Monotonic>> finished_at_;
  bool comparison_differs_ = false;
  std::map<std::string, int> digest_steps_;  ///< by host, once hours had been closed for a while
  struct Emergency {
    std::string stage;
    std::string dead;
  };
  std::optional<Emergency> emergency_;
  std::set<std::string> to_undo_;  ///< steps that have acted and can be undone
  int planned_moves_ = 0;
  bool paused_ = false;
  bool identified_ = false;
  bool cluster_paused_ = false;
  std::string run_state_;
  std::string run_reason_;
};

}  // namespace verger::sim
