#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "planner/make_plan.h"

namespace verger::planner::detail {

/// New certificates are obtained where they are made in the run; then all else is one atomic stage:
/// they are checked and staged, all nodes trust the new roots (where there are some), each node
/// shows its new leaf, the leader last, all of it is proven and watched, and the old roots go.
/// `snapshot.preflight` has CertificateFacts.
std::expected<Plan, std::vector<Refusal>> plan_certificates(const ClusterSnapshot& snapshot,
                                                            const Policy& policy,
                                                            const History& history);

/// Durations of the past, by kind of step.
std::int64_t time_at_certificates_ms(const Policy& policy, std::span<const PastDuration> durations);

}  // namespace verger::planner::detail
