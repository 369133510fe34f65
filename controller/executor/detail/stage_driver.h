#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/executor/detail/run_context.h"
#include "controller/executor/detail/step_end.h"
#include "controller/executor/detail/undo.h"

namespace verger::controller::detail {

/// The stage has ended so that the run fails.
struct StageFailure {
  std::string state;   ///< of the stage: "failed", "undone"
  std::string reason;  ///< of the run
};

/// A stage forwards, group after group, and what a failed step means for it.
class StageDriver {
 public:
  StageDriver(std::shared_ptr<RunContext> run, std::shared_ptr<StepRunner> steps,
              std::shared_ptr<StageUndo> undo)
      : run_(std::move(run)), steps_(std::move(steps)), undo_(std::move(undo)) {}

  /// As far as the run's state lets it: look at that again afterwards. With a failure the stage's
  /// end is not journaled yet, so that it is with the run's.
  net::awaitable<std::optional<StageFailure>> drive(const planner::Stage& stage);
  /// Of a run that is cancelled: what acts was ordered to stop, and is brought to its end. False:
  /// a step under way was given up, since this controller does not know its kind.
  net::awaitable<bool> cancel(const planner::Stage& stage);

 private:
  /// True when all of the group's steps have ended well; false: look at the run's state again, or
  /// at `failure`.
  net::awaitable<bool> drive_group(const planner::Stage& stage, const planner::Group& group,
                                   std::optional<StageFailure>& failure);
  /// nullopt: the run may continue, or is cancelled.
  net::awaitable<std::optional<StageFailure>> fail(const planner::Stage& stage, std::string reason);
  /// Its nodes are skipped, and the run continues without them.
  void skip_failed_nodes(const planner::Stage& stage, const std::string& reason);
  /// Half of a stage that undoes all must not stay through a pause: it is undone, to be done
  /// again as a whole.
  net::awaitable<void> roll_back(const planner::Stage& stage, std::string_view why);
  /// After a restart in the middle of the undo: the step that failed still knows.
  [[nodiscard]] std::string why_undone(const planner::Stage& stage) const;
  [[nodiscard]] bool any_step_is(const planner::Stage& stage, StepStatus status) const;

  std::shared_ptr<RunContext> run_;
  std::shared_ptr<StepRunner> steps_;
  std::shared_ptr<StageUndo> undo_;
};

}  // namespace verger::controller::detail
