#pragma once

#include <memory>

#include "controller/executor/step_kind.h"

/// The kinds of a resize's own steps. Names and parameters: planner/resize/resize_steps.h.
namespace verger::controller::resize {

/// Gives the node's server another cluster size. Result: {"instance", "seeds", "size"}.
std::unique_ptr<StepKind> make_size_step();
/// Looks until the members have what is committed. Result: {"epoch", "leader", "positions"}.
std::unique_ptr<StepKind> make_settled_step();
/// Starts a new voter. Result: as of growth_steps::kStart.
std::unique_ptr<StepKind> make_voter_start_step();
/// Sees a new voter follow, or lead. Result: as of restore_steps::kCheck.
std::unique_ptr<StepKind> make_voter_follows_step();
/// Stops a voter for good. Result: as of restore_steps::kStop.
std::unique_ptr<StepKind> make_leave_step();
/// Changes the registration. Result: {"leader", "size"}.
std::unique_ptr<StepKind> make_commit_step();

}  // namespace verger::controller::resize
