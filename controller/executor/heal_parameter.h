#pragma once

#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"

namespace verger::controller::steps {

/// Passes what planner/detail/heal_parameter.h gave a step on to its agent. Where it is not to be,
/// the agent is sent nothing of it: one of an older version refuses parameters that it does not
/// know.
inline void pass_heal_filter(const planner::Step& step, nlohmann::json& parameters) {
  if (bool_parameter(step, "healFilter", false)) {
    parameters["healFilter"] = true;
  }
}

}  // namespace verger::controller::steps
