#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controller/executor/run_state.h"
#include "planner/node_work.h"
#include "planner/snapshot.h"

/// What may still run on nodes that a person left out of a run.
namespace verger::controller::detail {

using LeftBehind = planner::NodeWork;

/// What may run on a skipped `node`: seen by its own routes or by its agent, or begun by the run
/// and not seen to end. nullopt: nothing does, or a person said that it does not matter.
std::optional<LeftBehind> left_behind(const RunState& run, const planner::ClusterSnapshot& snapshot,
                                      std::string_view node);

/// The id of a step on the skipped node that was begun and not seen to end; empty: there is none.
std::string unseen_step(const RunState& run, std::string_view node);

/// The first step that waits for work elsewhere, of a node that has not been left out, that is to
/// begin; nullptr: there is none.
const planner::Step* next_waiting(const RunState& run);

/// The command that lets the run continue despite what runs on the node.
std::string how_to_disregard(const RunState& run, std::string_view node);

}  // namespace verger::controller::detail
