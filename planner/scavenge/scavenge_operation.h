#pragma once

#include "planner/operation.h"

namespace verger::planner {

/// The scavenge of a whole cluster to one point; the strategies are in plan_scavenge.cpp.
const Operation& scavenge_operation();

}  // namespace verger::planner
