#pragma once

#include <memory>

#include "controller/executor/detail/run_context.h"
#include "controller/executor/detail/step_end.h"
#include "controller/executor/detail/step_start.h"
#include "controller/executor/detail/step_watch.h"

namespace verger::controller::detail {

/// One step from state to state: pending, waiting -> StepStart -> acting, unknown -> StepWatch.
class StepMachine final : public StepRunner {
 public:
  explicit StepMachine(std::shared_ptr<RunContext> run)
      : run_(run), starts_(run), watches_(run, starts_) {}
  StepMachine(const StepMachine&) = delete;
  StepMachine& operator=(const StepMachine&) = delete;

  net::awaitable<StepEnd> drive(const planner::Stage& stage, const planner::Step& step) override;
  net::awaitable<void> settle(const planner::Stage& stage, const planner::Step& step,
                              std::chrono::milliseconds limit) override;

 private:
  net::awaitable<StepEnd> to_end(const planner::Stage& stage, const planner::Step& step);

  std::shared_ptr<RunContext> run_;
  StepStart starts_;
  StepWatch watches_;
};

}  // namespace verger::controller::detail
