#pragma once

#include <chrono>
#include <memory>

#include "controller/executor/detail/run_context.h"

namespace verger::controller::detail {

/// What agents are asked for before a step acts: leave for one attempt, fenced by the epoch. A
/// newer controller's permit ends all older ones, and agents refuse older epochs.
class Permits {
 public:
  explicit Permits(std::shared_ptr<RunContext> run) : run_(std::move(run)) {}

  /// For the attempt in the context's state, at all agents; of a step that only brings its node
  /// back to how it was, at its own node's agent alone.
  net::awaitable<Result<void>> permit(StepContext context, std::chrono::milliseconds valid_for);
  /// At the agent of the step's own node alone, for every kind of step; at no agent where there is
  /// none.
  net::awaitable<Result<void>> permit_at_own_agent(StepContext context,
                                                   std::chrono::milliseconds valid_for);
  /// A request that was never answered may still arrive: true once the node's agent would no longer
  /// accept it. Always true of a node without agent, which cannot be queried.
  net::awaitable<bool> shut_out_late_request(StepContext context);

 private:
  [[nodiscard]] api::Permit permit_for(const StepContext& context,
                                       std::chrono::milliseconds valid_for) const;

  std::shared_ptr<RunContext> run_;
};

}  // namespace verger::controller::detail
