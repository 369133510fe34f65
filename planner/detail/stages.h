#pragma once

#include <utility>

#include "planner/plan.h"

namespace verger::planner::detail {

/// A group of one; an initializer list would copy the step.
inline Group alone(Step step) {
  Group group;
  group.push_back(std::move(step));
  return group;
}

}  // namespace verger::planner::detail
