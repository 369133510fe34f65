#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "planner/make_plan.h"

namespace verger::planner::detail {

/// Of the task create: each source is copied, one after the other, then the new backups are
/// verified, drilled where that is due, and older ones deleted. A scavenge of a source is stopped
/// before its copy and continued after it, where the policy says so. The other tasks are one of
/// these stages. `snapshot.preflight` has BackupFacts.
std::expected<Plan, std::vector<Refusal>> plan_backup(const ClusterSnapshot& snapshot,
                                                      const Policy& policy, const History& history);

}  // namespace verger::planner::detail
