#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/executor/atomic_stage.h"
#include "controller/executor/detail/core.h"

namespace verger::controller::detail {

/// What was journaled as JSON text; an empty object where it is none.
nlohmann::json parsed(const std::string& text);

/// What a run has changed of its cluster's registration, by kMembersValue among its values.
struct MemberChanges {
  std::set<std::string> joined;
  std::set<std::string> left;
};
MemberChanges own_member_changes(const std::map<std::string, std::string>& values);

/// What every part of a run's driver stands on: the run's state, looks at its cluster, records,
/// alerts, deadlines, sleeping. Knows no kind of step by name. One executor.
///
/// All that waits or records here throws Stopped or JournalTrouble where the run must not continue.
class RunContext {
 public:
  RunContext(std::shared_ptr<Core> core, std::shared_ptr<Run> run)
      : core_(std::move(core)), run_(std::move(run)) {}

  [[nodiscard]] RunState& state() { return run_->state; }
  [[nodiscard]] const RunState& state() const { return run_->state; }
  /// What is known of the run in this process alone.
  [[nodiscard]] Run& live() { return *run_; }
  [[nodiscard]] ExecutorParts& parts() { return core_->parts; }
  StepState& state_of(const planner::Step& step) { return run_->state.steps.at(step.id); }
  [[nodiscard]] StepKind& kind_of(const planner::Step& step) const;

  // --- the cluster
  /// As it is registered, or as the plan has it; with the nodes that the run adds.
  [[nodiscard]] ClusterConfig cluster() const;
  /// All that the step's gates look at.
  net::awaitable<planner::ClusterSnapshot> look(const planner::Step& step);
  /// How far the step is.
  net::awaitable<planner::ClusterSnapshot> watch(const planner::Step& step);
  /// The same of a step's own node, which takes `limit` at most and waits for no other node: of
  /// those it has what they say of it within a second.
  net::awaitable<planner::ClusterSnapshot> watch_alone(const planner::Step& step,
                                                       std::chrono::milliseconds limit);
  [[nodiscard]] std::optional<planner::Hours> hours(const ClusterConfig& config) const;
  StepContext context_of(const planner::Step& step, planner::ClusterSnapshot snapshot) const;

  // --- the journal
  void record(std::string_view type, nlohmann::json data);
  void record_all(std::vector<RunEvent> events);
  /// Events for those that the run does not have yet.
  [[nodiscard]] std::vector<RunEvent> new_values(
      const std::map<std::string, std::string>& values) const;
  /// Until clear_alert() of "STEP/WHAT", the same is not raised again.
  void alert_once(std::string_view step, std::string_view what, std::string reason);
  /// What the alert reported is over.
  void clear_alert(const std::string& key);
  /// False: the same was logged of it the last time.
  bool is_news(const std::string& what, const std::string& text);

  /// Where the values of a step that is done say so (kNewHistoryValue).
  Result<void> begin_new_history(const std::map<std::string, std::string>& values);
  /// The same of members (kMembersValue). Errors: those of Registry::change_members().
  Result<void> change_members(const std::map<std::string, std::string>& values);

  // --- time
  /// False: something happened to the run before.
  net::awaitable<bool> sleep_for(std::chrono::milliseconds duration);
  /// Returns once the run is neither pausing nor paused.
  net::awaitable<void> pause_point();
  void begin_deadline(const planner::Stage& stage, std::int64_t deadline_ms);
  /// True when the deadline has passed and the stage's rule ends the step for it.
  bool past_deadline(const planner::Stage& stage, const planner::Step& step,
                     std::string_view doing);
  /// How long the step has been in its present state, even when the wall clock was set.
  std::chrono::milliseconds in_state(const planner::Step& step, Ticks now) const;
  /// An attempt failed: the next one begins later, twice as late each time, up to half a
  /// minute. An alert fires when that continues.
  void back_off(const planner::Step& step, const std::string& reason);
  [[nodiscard]] Monotonic monotonic() const { return core_->parts.network.clock.monotonic(); }
  [[nodiscard]] std::chrono::milliseconds poll() const {
    return core_->parts.options.poll_interval;
  }

  // --- what the run is at
  /// Throws where nothing must be done or recorded.
  void check() const;
  [[nodiscard]] bool cancelling() const {
    return run_->state.status == RunStatus::kCancelling && !closing;
  }
  [[nodiscard]] bool pausing() const {
    return run_->state.status == RunStatus::kPausing || run_->state.status == RunStatus::kPaused;
  }
  [[nodiscard]] bool is_skipped(const planner::Step& step) const {
    return !step.node.empty() && run_->state.skipped_nodes.contains(step.node);
  }
  /// The same; or of an atomic stage a node that the run leaves out.
  [[nodiscard]] bool is_left_out(const planner::Stage& stage, const planner::Step& step) const {
    return is_skipped(step) || left_out_of(run_->state, stage) != nullptr;
  }
  /// Neither a pause nor the end of the hours stops the stage now.
  [[nodiscard]] bool must_finish(const planner::Stage& stage) const {
    return controller::must_finish(run_->state, stage);
  }
  [[nodiscard]] bool has_begun(const planner::Stage& stage) const;
  /// Nothing of the stage is begun any longer, and what it did is undone.
  [[nodiscard]] bool must_undo(const planner::Stage& stage) const;
  /// Stages whose work is done before the run ends, with any outcome.
  [[nodiscard]] bool closes_run(const planner::Stage& stage) const;
  /// What is left is done although the run is cancelled, or has failed.
  bool closing = false;
  void failpoint(const planner::Step& step, std::string_view where) const;

 private:
  void complete(planner::ClusterSnapshot& snapshot, const ClusterConfig& config);
  std::chrono::milliseconds in_reason(const planner::Step& step) const;

  std::shared_ptr<Core> core_;
  std::shared_ptr<Run> run_;
};

}  // namespace verger::controller::detail
