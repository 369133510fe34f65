#pragma once

#include <string>

#include "controller/cluster/registry.h"
#include "planner/snapshot.h"

namespace verger::controller {

/// The identity of the cluster's database, which all its agents tell alike. Empty: it is not known,
/// since not every node has an agent that answered and knows it, or they disagree.
std::string identity_of(const planner::ClusterSnapshot& snapshot);

/// The leader's epoch, where a majority of the voters is in it: every later leader has it in its
/// log. Number -1: there is no such epoch now.
EpochMark epoch_of(const planner::ClusterSnapshot& snapshot);

/// Why the cluster that answers is not the one in which `seen` was the epoch of a majority: its
/// leader's log does not have that epoch. Empty: it may be the same.
std::string contradicts_epoch(const planner::ClusterSnapshot& snapshot, const EpochMark& seen);

}  // namespace verger::controller
