#pragma once

#include <memory>

#include "controller/executor/step_kind.h"
#include "planner/verify/verify_steps.h"

/// The kinds of steps of a verification.
namespace verger::controller::verifications {

namespace names = planner::verify_steps;

/// As planner/verify/verify_steps.h says. Result: the agent's, with what it found as differences.
std::unique_ptr<StepKind> make_verify_step();

}  // namespace verger::controller::verifications
