#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "planner/make_plan.h"

namespace verger::planner::detail {

/// Of scope cluster one atomic stage "restore": look, stop all, restore all, see all stopped and
/// restored, start all; then "check". Of scope node the same two for one node after another. Of
/// task discard-old one stage. Needs the facts of a preflight (restore_facts.h), but for the last.
std::expected<Plan, std::vector<Refusal>> plan_restore(const ClusterSnapshot& snapshot,
                                                       const Policy& policy,
                                                       const History& history);
std::int64_t time_at_restore_ms(const Policy& policy, std::span<const PastDuration> durations);

}  // namespace verger::planner::detail
