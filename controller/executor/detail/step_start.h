#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/permits.h"
#include "controller/executor/detail/run_context.h"
#include "controller/executor/detail/step_end.h"
#include "controller/executor/detail/step_gates.h"

namespace verger::controller::detail {

/// The beginning of a step: gates, permits, intent, act.
class StepStart {
 public:
  explicit StepStart(std::shared_ptr<RunContext> run) : run_(run), permits_(run), gates_(run) {}

  /// From gates to the answer of the act; nullopt: continue with what the step's state says.
  net::awaitable<std::optional<StepEnd>> start(const planner::Stage& stage,
                                               const planner::Step& step);
  /// `again`: what has not arrived is sent once more under the same operation id.
  /// Else `values` of the run are journaled with the intent.
  net::awaitable<std::optional<StepEnd>> act(const planner::Stage& stage, const planner::Step& step,
                                             StepContext context, bool again,
                                             std::map<std::string, std::string> values = {});
  /// The intent was never heard of; once its node's agent would no longer accept it, it is given
  /// up.
  net::awaitable<bool> give_up_intent(const planner::Step& step, StepContext context,
                                      std::string reason, bool counts);

 private:
  net::awaitable<void> wait_for_gate(const planner::Stage& stage, const planner::Step& step,
                                     std::string reason,
                                     nlohmann::json gates = nlohmann::json::array());
  net::awaitable<void> wait_for_hours(const planner::Stage& stage, const planner::Step& step,
                                      std::optional<planner::Hours> seen);
  void tell_waiting(const planner::Step& step, const std::string& reason, nlohmann::json gates);

  std::shared_ptr<RunContext> run_;
  Permits permits_;
  StepGates gates_;
};

}  // namespace verger::controller::detail
