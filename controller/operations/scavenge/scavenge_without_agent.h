#pragma once

#include "controller/executor/step_kind.h"

/// A scavenge through the node interface alone. Which point it reaches cannot be seen there; what
/// is claimed is that a run of this node ended in Success without error, and began once the node's
/// log held everything that the leader had when the point was made. Outcomes are decided in the
/// order of node-interface.md §6.1: current, then the run's log, then the last scavenge (24.10).
namespace verger::controller::scavenge {

net::awaitable<Readiness> prepare_without_agent(StepContext context);
net::awaitable<ActAnswer> start_without_agent(StepContext context);
net::awaitable<Verdict> observe_without_agent(StepContext context);
net::awaitable<void> stop_without_agent(StepContext context);

}  // namespace verger::controller::scavenge
