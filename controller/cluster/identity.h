#pragma once

#include <string>

#include "planner/snapshot.h"

namespace verger::controller {

/// The identity of the cluster's database, which all its agents tell alike. Empty: it is not known,
/// since not every node has an agent that answered and knows it, or they disagree.
std::string identity_of(const planner::ClusterSnapshot& snapshot);

}  // namespace verger::controller
