#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "planner/make_plan.h"

namespace verger::planner::detail {

/// One atomic stage. Larger: restore the new nodes, which stay stopped; restart the members with
/// the larger size, the leader last; see that all of them have what is committed; start the new
/// nodes, see them follow, register both. Smaller: stop those that leave; see that those that stay
/// have what is committed; restart them with the smaller size, the leader last; see that again;
/// register. Needs the facts of a preflight (ResizeFacts).
std::expected<Plan, std::vector<Refusal>> plan_resize(const ClusterSnapshot& snapshot,
                                                      const Policy& policy, const History& history);
std::int64_t time_at_resize_ms(const Policy& policy, std::span<const PastDuration> durations);

}  // namespace verger::planner::detail
