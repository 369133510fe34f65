#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "controller/executor/detail/permits.h"
#include "controller/executor/detail/run_context.h"
#include "controller/executor/detail/step_end.h"
#include "controller/executor/detail/step_start.h"

namespace verger::controller::detail {

/// A step that may have acted: its node is looked at until it can tell how that ended.
class StepWatch {
 public:
  StepWatch(std::shared_ptr<RunContext> run, StepStart& starts)
      : run_(run), permits_(run), starts_(starts) {}

  /// Until the intent is known to have ended one way or the other, or the step's stage is to be
  /// undone (kLeft); nullopt: continue with what the step's state says.
  net::awaitable<std::optional<StepEnd>> watch(const planner::Stage& stage,
                                               const planner::Step& step);
  /// As the beginning of its undo: it is stopped, and left at `until`, or, where it can be undone,
  /// as soon as its node cannot tell.
  net::awaitable<std::optional<StepEnd>> watch_for_undo(const planner::Stage& stage,
                                                        const planner::Step& step, Monotonic until);

 private:
  /// nullopt: for the outcome. Else for the undo, until then.
  using ForUndo = std::optional<Monotonic>;
  net::awaitable<std::optional<StepEnd>> look_until_ended(const planner::Stage& stage,
                                                          const planner::Step& step, ForUndo until);
  net::awaitable<planner::ClusterSnapshot> look(const planner::Step& step, ForUndo undo);
  /// Before the first look of this process.
  void note_unwatched(const planner::Step& step);
  /// Each journals `news` too.
  void tell_progress(const planner::Step& step, const Verdict& verdict, std::vector<RunEvent> news);
  void tell_unknown(const planner::Stage& stage, const planner::Step& step, const Verdict& verdict,
                    std::vector<RunEvent> news);
  /// What has not arrived is sent again. False: it is given up, and the step begins anew.
  net::awaitable<bool> ask_again(const planner::Stage& stage, const planner::Step& step,
                                 StepContext context, ForUndo undo);
  /// Until the next look: at the end of the operation, or when a usual pause is over, or the run's
  /// state has changed.
  net::awaitable<void> wait_for_agent(const planner::Step& step, std::shared_ptr<Peers> peers,
                                      std::chrono::milliseconds in_state);
  net::awaitable<void> interrupt_if_wanted(const planner::Stage& stage, const planner::Step& step,
                                           StepContext context, ForUndo undo);
  /// Its outcome is not waited for: its node is skipped, and the stage is done without it.
  [[nodiscard]] bool is_given_up(const planner::Stage& stage, const planner::Step& step) const {
    return run_->is_skipped(step) && !stage.atomic;
  }

  std::shared_ptr<RunContext> run_;
  Permits permits_;
  StepStart& starts_;
};

}  // namespace verger::controller::detail
