#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "planner/make_plan.h"

namespace verger::planner::detail {

/// Look at all nodes, agree on one list, then redact node by node in the order of an offline
/// scavenge, each in its way (redaction_choice.h); look at all nodes again, then for backups, and
/// delete those that the policy says. Else every refusal, with its hint.
std::expected<Plan, std::vector<Refusal>> plan_redaction(const ClusterSnapshot& snapshot,
                                                         const Policy& policy,
                                                         const History& history);

}  // namespace verger::planner::detail
