#pragma once

#include <utility>

#include "planner/plan.h"

namespace verger::planner::detail {

/// The step of a new group of one, behind the stage's others; it stays where it is.
inline Step& add_alone(Stage& stage) { return stage.groups.emplace_back().emplace_back(); }

/// Adds a member behind those there are: names come in ascending order.
template <class Value>
void add_parameter(Step& step, const char* name, Value value) {
  step.parameters.emplace_hint(step.parameters.end(), name, std::move(value));
}

/// A group of one; an initializer list would copy the step.
inline Group alone(Step step) {
  Group group;
  group.push_back(std::move(step));
  return group;
}

}  // namespace verger::planner::detail
