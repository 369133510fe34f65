#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/executor/step_kind.h"
#include "planner/resize/resize_steps.h"

/// What the kinds of a resize's steps share.
namespace verger::controller::resize {

namespace names = planner::resize_steps;

[[nodiscard]] bool is_committed(const StepContext& context);
/// A node of "absent" that runs; empty: none does.
std::string who_must_not_run(const StepContext& context);
/// Why the nodes of "nodes" are not all members of one leader's epoch with all that is committed;
/// empty: they are.
std::string not_settled(const StepContext& context);

}  // namespace verger::controller::resize
