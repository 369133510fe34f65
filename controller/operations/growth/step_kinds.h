#pragma once

#include <memory>

#include "controller/executor/step_kind.h"

/// The kinds of a growth's own steps. Names and parameters: planner/growth/growth_steps.h.
namespace verger::controller::growth {

/// Starts the server of a new node; undone by stopping it. Result: {"instance"}.
std::unique_ptr<StepKind> make_join_start_step();
/// Registers it once it is what it is to be. Result: {"role", "version", "writer"}.
std::unique_ptr<StepKind> make_join_register_step();

}  // namespace verger::controller::growth
