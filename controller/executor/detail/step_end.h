#pragma once

#include <chrono>
#include <cstdint>

#include <boost/asio/awaitable.hpp>

#include "controller/executor/run_state.h"
#include "planner/plan.h"

namespace verger::controller::detail {

/// kLeft: the run's state, or that of the step beside it, says why. kClosed: its hours ended in the
/// middle of a stage that must not stay half done.
enum class StepEnd : std::uint8_t { kDone, kFailed, kSkipped, kDeferred, kLeft, kClosed };

[[nodiscard]] constexpr bool is_over(StepStatus status) {
  return status == StepStatus::kDone || status == StepStatus::kFailed ||
         status == StepStatus::kSkipped || status == StepStatus::kUndone;
}

/// It may have acted, and its end has not been seen.
[[nodiscard]] constexpr bool is_under_way(StepStatus status) {
  return status == StepStatus::kActing || status == StepStatus::kUnknown;
}

/// What a stage needs of the machinery of steps.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  /// From the step's state to its end. Of the steps of a group each is driven beside the others.
  virtual boost::asio::awaitable<StepEnd> drive(const planner::Stage& stage,
                                                const planner::Step& step) = 0;
  /// Before it is undone: what it began is stopped if that can be done, and watched to its end for
  /// `limit` at most; a step that can be undone, as long as its node can tell. Begins nothing.
  virtual boost::asio::awaitable<void> settle(const planner::Stage& stage,
                                              const planner::Step& step,
                                              std::chrono::milliseconds limit) = 0;
};

}  // namespace verger::controller::detail
