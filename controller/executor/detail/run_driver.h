#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/core.h"
#include "planner/gates.h"

namespace verger::controller::detail {

/// kClosed: its hours ended in the middle of a stage that must not stay half done.
enum class StepEnd : std::uint8_t { kDone, kFailed, kSkipped, kDeferred, kLeft, kClosed };

/// What was journaled as JSON text; an empty object where it is none.
nlohmann::json parsed(const std::string& text);

/// One life of a run's coroutines: from the journal's state to the end, a stop, or trouble with the
/// journal. Knows no kind of step by name.
class RunDriver : public std::enable_shared_from_this<RunDriver> {
 public:
  RunDriver(std::shared_ptr<Core> core, std::shared_ptr<Run> run)
      : core_(std::move(core)), run_(std::move(run)) {}

  /// Throws Stopped and JournalTrouble.
  net::awaitable<void> drive();

 private:
  // run_driver.cpp: forwards, stage by stage
  net::awaitable<bool> drive_stage(const planner::Stage& stage);
  net::awaitable<bool> drive_group(const planner::Stage& stage, const planner::Group& group);
  /// All stages have ended: done, or done with differences where a step saw some.
  void end_done();
  net::awaitable<void> fail_stage(const planner::Stage& stage, std::string reason);
  [[nodiscard]] bool has_begun(const planner::Stage& stage) const;
  /// Stages whose work is done before the run ends, with any outcome.
  [[nodiscard]] bool closes_run(const planner::Stage& stage) const;
  /// Drives them. False: the run has ended by one of them.
  net::awaitable<bool> close_run();
  /// The first step not ended whose kind this controller does not know.
  [[nodiscard]] const planner::Step* unknown_step() const;

  // run_undo.cpp: backwards
  /// After a restart in the middle of the undo: the step that failed still knows.
  [[nodiscard]] std::string why_undone(const planner::Stage& stage) const;
  net::awaitable<void> undo_stage(const planner::Stage& stage, std::string_view why);
  /// Half of a stage that undoes all must not stay through a pause: it is undone, to be done
  /// again as a whole.
  net::awaitable<void> roll_back(const planner::Stage& stage, std::string_view why);
  /// The stage is rolled back because of its hours, and they are closed still.
  [[nodiscard]] bool waits_for_hours(const planner::Stage& stage, const planner::Step& step) const;
  /// The last first. A node that cannot be reached does not hold up the others.
  using Steps = std::vector<const planner::Step*>;
  static net::awaitable<bool> undo_node(std::shared_ptr<RunDriver> self,
                                        const planner::Stage* stage, Steps steps);
  net::awaitable<void> undo_step(const planner::Stage& stage, const planner::Step& step);
  net::awaitable<void> finish_cancelled();

  // step_driver.cpp: one step from state to state
  static net::awaitable<StepEnd> drive_step(std::shared_ptr<RunDriver> self,
                                            const planner::Stage* stage, const planner::Step* step);
  net::awaitable<StepEnd> step_to_end(const planner::Stage& stage, const planner::Step& step);
  net::awaitable<void> interrupt_if_wanted(const planner::Step& step, StepContext context);
  /// True when the deadline has passed and the stage's rule ends the step for it.
  bool past_deadline(const planner::Stage& stage, const planner::Step& step,
                     std::string_view doing);
  net::awaitable<void> pause_point();

  // step_begin.cpp: gates, permits, intent, act
  struct Fit {
    std::string problem{};  ///< why it is not begun in what is left of its hours; empty: it fits
    bool never = false;     ///< nor would it have fitted into all of them
  };
  struct ClosedGates {
    std::string reason{};  ///< of all that are closed; empty: none is
    nlohmann::json gates = nlohmann::json::array();
    bool only_hours = true;
    /// The node's turn comes after the others' instead; then nothing else is said.
    bool deferred = false;
    Fit fit{};
    /// Open ones that could not be looked at.
    nlohmann::json not_seen = nlohmann::json::array();
    void add(const planner::GateState& state);
  };
  /// Keeps a step that waits for work elsewhere back while something may run on a node that
  /// was skipped; journals where that is over.
  void add_left_behind(const planner::Step& step, const StepContext& context, ClosedGates& closed);
  /// A request to a skipped node that was never answered: its agent may still accept it.
  [[nodiscard]] bool may_still_arrive(std::string_view node, const StepContext& context) const;
  /// What holds the step back now, its hours if they are too short for it among that.
  bool is_own_election(const planner::Step& step, const planner::ClusterSnapshot& snapshot) const;
  ClosedGates closed_gates(const planner::Stage& stage, const planner::Step& step,
                           const StepContext& context);
  /// From gates to the answer of the act; nullopt: continue with what the step's state says.
  net::awaitable<std::optional<StepEnd>> start_step(const planner::Stage& stage,
                                                    const planner::Step& step);
  net::awaitable<std::optional<StepEnd>> act(const planner::Stage& stage, const planner::Step& step,
                                             StepContext context, bool again);
  net::awaitable<void> wait_for_gate(const planner::Stage& stage, const planner::Step& step,
                                     std::string reason,
                                     nlohmann::json gates = nlohmann::json::array());
  net::awaitable<void> wait_for_hours(const planner::Step& step,
                                      std::optional<planner::Hours> seen);
  void tell_waiting(const planner::Step& step, const std::string& reason, nlohmann::json gates);
  /// Raises one alert for the gates that have been closed for too long, and clears it once none is.
  void track_closed_gates(const planner::Step& step, const std::string& reason,
                          const nlohmann::json& gates);
  /// The same of a step that does not fit into its hours.
  void track_fit(const planner::Step& step, const ClosedGates& closed);
  /// Of a step that cannot be interrupted.
  [[nodiscard]] Fit fit(const planner::Stage& stage, const planner::Step& step,
                        const StepContext& context) const;
  /// For the attempt in the context's state, at all agents; of a step that only brings its node
  /// back to how it was, at its own node's agent alone. With a time of 0 it is revoked.
  net::awaitable<Result<void>> permit(StepContext context, std::chrono::milliseconds valid_for);
  /// A request that was never answered may still arrive: true once the node's agent would no longer
  /// accept it. Always true of a node without agent, which cannot be queried.
  net::awaitable<bool> shut_out_late_request(StepContext context);
  /// The intent was never heard of; once no agent would accept it any longer, it is given up.
  net::awaitable<bool> give_up_intent(const planner::Step& step, StepContext context,
                                      std::string reason, bool counts);

  // step_watch.cpp: looks until the intent is known to have ended one way or the other
  net::awaitable<std::optional<StepEnd>> watch_step(const planner::Stage& stage,
                                                    const planner::Step& step);
  /// Before the first look of this process.
  void note_unwatched(const planner::Step& step);
  /// Each journals `news` too.
  void tell_progress(const planner::Step& step, const Verdict& verdict, std::vector<RunEvent> news);
  void tell_unknown(const planner::Step& step, const Verdict& verdict, std::vector<RunEvent> news);
  /// What has not arrived is sent again. False: it is given up, and the step begins anew.
  net::awaitable<bool> ask_again(const planner::Stage& stage, const planner::Step& step,
                                 StepContext context);

  // run_context.cpp
  void begin_deadline(const planner::Stage& stage, std::int64_t deadline_ms);
  /// The cluster as it is registered, or as the plan has it.
  [[nodiscard]] ClusterConfig cluster() const;
  /// All that gates look at.
  net::awaitable<planner::ClusterSnapshot> look();
  /// How far the step is.
  net::awaitable<planner::ClusterSnapshot> watch(const planner::Step& step);
  void complete(planner::ClusterSnapshot& snapshot, const ClusterConfig& config);
  [[nodiscard]] std::optional<planner::Hours> hours(const ClusterConfig& config) const;
  net::awaitable<void> sleep_for(std::chrono::milliseconds duration);
  /// How long the step has been in its present state, even when the wall clock was set.
  std::chrono::milliseconds in_state(const planner::Step& step, Ticks now) const;
  std::chrono::milliseconds in_reason(const planner::Step& step) const;
  /// Events for those that the run does not have yet.
  [[nodiscard]] std::vector<RunEvent> new_values(
      const std::map<std::string, std::string>& values) const;
  /// An attempt failed: the next one begins later, twice as late each time, up to half a
  /// minute. An alert fires when that continues.
  void back_off(const planner::Step& step, const std::string& reason);
  StepContext context_of(const planner::Step& step, planner::ClusterSnapshot snapshot) const;
  StepState& state_of(const planner::Step& step) { return run_->state.steps.at(step.id); }
  StepKind& kind_of(const planner::Step& step) const;
  void record(std::string_view type, nlohmann::json data);
  void record_all(std::vector<RunEvent> events);
  void alert_once(std::string_view step, std::string_view what, std::string reason);
  /// What the alert reported is over.
  void clear_alert(const std::string& key);
  /// False: the same was logged of it the last time.
  bool is_news(const std::string& what, const std::string& text);
  /// Raises an alert of a node that has been silent for minutes, such as one that crashed in
  /// resigning and that nothing starts again.
  void track_given_up(const planner::NodeSnapshot& node);
  void track_silence(const planner::ClusterSnapshot& snapshot);
  void track_leader(const planner::ClusterSnapshot& snapshot);
  void check() const;
  void failpoint(const planner::Step& step, std::string_view where) const;
  [[nodiscard]] bool cancelling() const {
    return run_->state.status == RunStatus::kCancelling && !closing_;
  }
  [[nodiscard]] bool pausing() const {
    return run_->state.status == RunStatus::kPausing || run_->state.status == RunStatus::kPaused;
  }
  [[nodiscard]] bool is_skipped(const planner::Step& step) const {
    return !step.node.empty() && run_->state.skipped_nodes.contains(step.node);
  }
  [[nodiscard]] Mutations broken() const {
    return kMayBeBroken ? core_->parts.options.mutations : Mutations{};
  }
  [[nodiscard]] Monotonic monotonic() const { return core_->parts.network.clock.monotonic(); }
  [[nodiscard]] std::chrono::milliseconds poll() const {
    return core_->parts.options.poll_interval;
  }

  std::shared_ptr<Core> core_;
  std::shared_ptr<Run> run_;
  bool closing_ = false;  ///< what is left is done although the run is cancelled, or has failed
};

}  // namespace verger::controller::detail
