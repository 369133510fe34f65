#include "planner/make_plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <tuple>

#include "planner/operations.h"

namespace verger::planner {
namespace {

/// Each node is copied once, into its place.
ClusterSnapshot sorted_by_name(const ClusterSnapshot& snapshot) {
  std::vector<const NodeSnapshot*> order;
  order.reserve(snapshot.nodes.size());
  for (const auto& node : snapshot.nodes) {
    order.push_back(&node);
  }
  std::ranges::sort(order, {}, [](const NodeSnapshot* node) -> const auto& { return node->name; });
  ClusterSnapshot out{.cluster = snapshot.cluster,
                      .taken_at = snapshot.taken_at,
                      .nodes = {},
                      .unregistered = snapshot.unregistered,
                      .unregistered_voters = snapshot.unregistered_voters,
                      .wrong_cluster = snapshot.wrong_cluster,
                      .leader_stable_ms = snapshot.leader_stable_ms,
                      .hours = snapshot.hours,
                      .queries = snapshot.queries,
                      .preflight = snapshot.preflight,
                      .joining = snapshot.joining};
  out.nodes.reserve(order.size());
  for (const auto* node : order) {
    out.nodes.push_back(*node);
  }
  return out;
}

/// What the operation's own look at the cluster adds to its plan, or to why there is none.
void add_preflight(const Preflight& preflight, std::expected<Plan, std::vector<Refusal>>& planned) {
  if (planned && preflight.refusals.empty()) {
    planned->notes.insert(planned->notes.end(), preflight.notes.begin(), preflight.notes.end());
    return;
  }
  auto all = planned ? std::vector<Refusal>() : std::move(planned.error());
  all.insert(all.end(), preflight.refusals.begin(), preflight.refusals.end());
  std::ranges::sort(all, {}, [](const Refusal& each) {
    return std::tie(each.node, each.code, each.message, each.hint);
  });
  const auto repeated = std::ranges::unique(all);
  all.erase(repeated.begin(), repeated.end());
  planned = std::unexpected(std::move(all));
}

}  // namespace

Basis basis_of(const ClusterSnapshot& snapshot, const Policy& policy) {
  auto out = basis_of(snapshot);
  const auto* operation = operation_of(policy);
  if (operation == nullptr || operation->may_restart == nullptr) {
    return out;
  }
  for (auto& node : out.nodes) {
    const auto* seen = snapshot.find(node.name);
    if (seen != nullptr && operation->may_restart(policy, *seen)) {
      node = BasisNode{.name = std::move(node.name),
                       .url = std::move(node.url),
                       .agent_url = std::move(node.agent_url),
                       .role = {},
                       .version = {},
                       .instance_id = {},
                       .certificates = {}};
    }
  }
  return out;
}

std::expected<Plan, std::vector<Refusal>> make_plan(const ClusterSnapshot& snapshot,
                                                    const Policy& policy, const History& history) {
  const auto* operation = operation_of(policy);
  if (operation == nullptr) {
    return std::unexpected(std::vector{Refusal{
        "unknown-operation", "", fmt::format("unknown operation \"{}\"", operation_name(policy)),
        known_operations()}});
  }
  std::optional<ClusterSnapshot> copy;
  if (!std::ranges::is_sorted(snapshot.nodes, {}, &NodeSnapshot::name)) {
    copy = sorted_by_name(snapshot);
  }
  const auto& sorted = copy ? *copy : snapshot;
  auto plan = operation->plan(sorted, policy, history);
  if (sorted.preflight) {
    add_preflight(*sorted.preflight, plan);
  }
  if (plan) {
    plan->basis = basis_of(sorted, policy);
    plan->made_at = snapshot.taken_at;
    plan->hash = hash_of(*plan);
  }
  return plan;
}

}  // namespace verger::planner
