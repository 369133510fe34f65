#pragma once

#include "controller/cluster/registry.h"
#include "planner/policy.h"

/// Nodes that runs of an operation add to a cluster (planner::Operation::joining). Until they are
/// registered only what belongs to the plan or the run knows them.
namespace verger::controller {

/// `config` with those of `policy`, as far as they are not registered yet.
ClusterConfig with_joining(ClusterConfig config, const planner::Policy& policy);
/// That they could be registered with the others now. Errors: those of Registry::update().
Result<void> check_joining(const Registry& registry, const ClusterConfig& config,
                           const planner::Policy& policy);

}  // namespace verger::controller
