#pragma once

#include <memory>

#include "controller/executor/detail/run_context.h"
#include "controller/executor/detail/stage_driver.h"
#include "controller/executor/detail/step_machine.h"
#include "controller/executor/detail/undo.h"

namespace verger::controller::detail {

/// One life of a run's coroutines: from the journal's state to the end, a stop, or trouble with the
/// journal. Stage after stage, and how the run ends.
class RunDriver {
 public:
  RunDriver(std::shared_ptr<Core> core, std::shared_ptr<Run> run)
      : run_(std::make_shared<RunContext>(std::move(core), std::move(run))),
        steps_(std::make_shared<StepMachine>(run_)),
        stages_(run_, steps_, std::make_shared<Undo>(run_, steps_)) {}

  /// Throws Stopped and JournalTrouble.
  net::awaitable<void> drive();

 private:
  /// All stages have ended: done, or done with differences where a step saw some.
  void end_done();
  net::awaitable<void> end_failed(const planner::Stage& stage, StageFailure failure);
  void end_failed_now(const planner::Stage& stage, const StageFailure& failure);
  net::awaitable<void> finish_cancelled();
  /// Drives the stages that close the run. False: the run has ended by one of them.
  net::awaitable<bool> close_run();
  /// With what could not be undone, and the commands for it.
  [[nodiscard]] std::string with_undo(std::string reason) const;
  /// The first step not ended whose kind this controller does not know.
  [[nodiscard]] const planner::Step* unknown_step() const;

  std::shared_ptr<RunContext> run_;
  std::shared_ptr<StepMachine> steps_;
  StageDriver stages_;
};

}  // namespace verger::controller::detail
