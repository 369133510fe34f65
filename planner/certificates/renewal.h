#pragma once

#include "planner/operation.h"

namespace verger::planner::detail {

/// When the nodes' certificates are to be renewed, from what they serve: once the policy's share of
/// a leaf's lifetime has passed, earlier by a jitter that is the same for a cluster each time. The
/// deadline is the end of the first leaf to end.
Need need_of_certificates(const ClusterSnapshot& snapshot, const Policy& policy);

}  // namespace verger::planner::detail
