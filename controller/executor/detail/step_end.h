#pragma once

#include <cstdint>

#include <boost/asio/awaitable.hpp>

#include "controller/executor/run_state.h"
#include "planner/plan.h"

namespace verger::controller::detail {

/// kLeft: the run's state says why. kClosed: its hours ended in the middle of a stage that must not
/// stay half done.
enum class StepEnd : std::uint8_t { kDone, kFailed, kSkipped, kDeferred, kLeft, kClosed };

[[nodiscard]] constexpr bool is_over(StepStatus status) {
  return status == StepStatus::kDone || status == StepStatus::kFailed ||
         status == StepStatus::kSkipped || status == StepStatus::kUndone;
}

/// What a stage needs of the machinery of steps.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  /// From the step's state to its end. Of the steps of a group each is driven beside the others.
  virtual boost::asio::awaitable<StepEnd> drive(const planner::Stage& stage,
                                                const planner::Step& step) = 0;
};

}  // namespace verger::controller::detail
