#pragma once

#include <expected>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace verger::planner {

/// What this cluster's past says of durations.
struct PastDuration {
  std::string node;
  std::string kind;
  std::int64_t duration_ms = 0;
  std::int64_t throttle_percent = 100;  ///< share of that time in which it worked
};
/// Of this cluster's earlier runs.
struct History {
  std::vector<PastDuration> durations;
};

/// The plan, or every reason at once why there is none. The same arguments give the same plan,
/// in any order of nodes; `snapshot.taken_at` is its only now.
std::expected<Plan, std::vector<Refusal>> make_plan(const ClusterSnapshot& snapshot,
                                                    const Policy& policy,
                                                    const History& history = {});

}  // namespace verger::planner
