#pragma once

#include <string_view>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"

namespace verger::controller::redactions {

/// A step that one operation of its node's agent carries out, as long as that takes. It is stopped
/// by cancelling that operation.
class AgentWork : public StepKind {
 public:
  net::awaitable<Verdict> observe(StepContext context) final;
  [[nodiscard]] bool waits_for_agent(const StepContext&) const final { return true; }
  net::awaitable<void> interrupt(StepContext context) final;

 private:
  /// Of an operation that the agent reports as done, with its result in snake_case.
  [[nodiscard]] virtual Verdict judge_done(const StepContext& context,
                                           const nlohmann::json& result) const = 0;
  /// Of one that failed, and was not stopped.
  [[nodiscard]] virtual Verdict judge_failure(const StepContext& context,
                                              const steps::OperationNews& news) const;
  /// For people, while the agent shows no progress.
  [[nodiscard]] virtual std::string_view without_progress() const { return "at work"; }
  /// For people, of one that was stopped.
  [[nodiscard]] virtual std::string_view where_it_stopped() const = 0;
};

}  // namespace verger::controller::redactions
