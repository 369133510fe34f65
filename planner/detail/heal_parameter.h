#pragma once

#include "planner/plan.h"

namespace verger::planner::detail {

/// Of a step that stops its server and starts it again: the server makes its existence filter anew
/// when it starts, as it does for the operation heal. Only a step that is to has it.
inline void add_heal_filter(Step& step, bool heals) {
  if (heals) {
    step.parameters.emplace("healFilter", true);
  }
}

}  // namespace verger::planner::detail
