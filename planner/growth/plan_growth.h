#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "planner/make_plan.h"

namespace verger::planner::detail {

/// One atomic stage "join": look, stop, restore, start, see it follow, register; before them, of a
/// voter that is replaced and whose agent answers, stop that. Needs the facts of a preflight
/// (RestoreFacts of the new node).
std::expected<Plan, std::vector<Refusal>> plan_growth(const ClusterSnapshot& snapshot,
                                                      const Policy& policy, const History& history);
std::int64_t time_at_growth_ms(const Policy& policy, std::span<const PastDuration> durations);

}  // namespace verger::planner::detail
