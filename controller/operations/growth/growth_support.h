#pragma once

#include <string>

#include "controller/executor/step_kind.h"
#include "planner/growth/growth_steps.h"

/// What the kinds of a growth's steps share.
namespace verger::controller::growth {

namespace names = planner::growth_steps;

/// Why the new node must not become a member, as it shows itself: another role, another version, or
/// the node that it replaces runs. Empty: nothing, as far as it answers.
std::string why_not_a_member(const StepContext& context);

}  // namespace verger::controller::growth
