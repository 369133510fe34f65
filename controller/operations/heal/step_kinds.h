#pragma once

#include <memory>

#include "controller/executor/step_kind.h"
#include "planner/heal/heal_steps.h"

/// The kinds of steps of healing.
namespace verger::controller::healing {

namespace names = planner::heal_steps;

/// As planner/heal/heal_steps.h says. Result: the agent's; streams that are not found all the same
/// are differences.
std::unique_ptr<StepKind> make_heal_filter_step();

}  // namespace verger::controller::healing
