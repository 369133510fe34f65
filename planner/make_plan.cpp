#include "planner/make_plan.h"

#include <algorithm>
#include <fmt/format.h>

#include "planner/detail/plan_scavenge.h"

namespace verger::planner {

std::expected<Plan, std::vector<Refusal>> make_plan(const ClusterSnapshot& snapshot,
                                                    const Policy& policy, const History& history) {
  if (policy.operation != "scavenge") {
    return std::unexpected(std::vector{
        Refusal{"unknown-operation", "", fmt::format("nobody can plan \"{}\"", policy.operation),
                "the operations are: scavenge"}});
  }
  auto sorted = snapshot;
  std::ranges::sort(sorted.nodes, {}, &NodeSnapshot::name);
  auto plan = detail::plan_scavenge(sorted, policy, history);
  if (plan) {
    plan->basis = basis_of(sorted);
    plan->made_at = snapshot.taken_at;
    plan->hash = hash_of(*plan);
  }
  return plan;
}

}  // namespace verger::planner
