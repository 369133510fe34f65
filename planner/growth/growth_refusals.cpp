#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "engine/base/quantities.h"
#include "planner/detail/gate_checks.h"
#include "planner/gates.h"
#include "planner/growth/growth_order.h"
#include "planner/growth/new_node.h"
#include "planner/node_work.h"
#include "planner/operations.h"

namespace verger::planner::detail {
namespace {

class RefusingGrowth {
 public:
  explicit RefusingGrowth(const GrowthOrder& order) : order_(order) {}

  std::vector<Refusal> all() {
    check_policy();
    check_cluster();
    check_replaced();
    if (order_.joins == nullptr) {
      refuse("no-node-named", "", "no new node is named, or its URL cannot be read",
             "name it: --node NAME=URL --agent URL");
    } else {
      const RefusingNewNode looks(order_.snapshot, order_.facts ? &*order_.facts : nullptr,
                                  order_.wanted.repository, order_.policy.gates.disk_reserve_bytes);
      looks.check_node(*order_.joins, refusals_);
      looks.check_backup(*order_.joins, refusals_);
    }
    std::ranges::sort(refusals_, {}, [](const Refusal& each) {
      return std::tie(each.node, each.code, each.message);
    });
    const auto repeated = std::ranges::unique(refusals_);
    refusals_.erase(repeated.begin(), repeated.end());
    return std::move(refusals_);
  }

 private:
  void refuse(std::string code, std::string node, std::string message, std::string hint) {
    refusals_.push_back({std::move(code), std::move(node), std::move(message), std::move(hint)});
  }

  void check_policy() {
    for (auto& problem : GrowthPolicy::operation().check(order_.policy)) {
      refuse("policy-invalid", "", std::move(problem.message), std::move(problem.hint));
    }
    if (order_.wanted.repository.empty()) {
      refuse("no-repository-named", "", "no repository is named",
             "name it (--repository); see them with: verger backup repositories");
    }
    if (order_.wanted.join_deadline_ms <= 0 || order_.policy.limits.undo_deadline_ms <= 0 ||
        order_.policy.limits.service_deadline_ms <= 0 || order_.policy.gates.lag_limit_bytes < 0 ||
        order_.policy.gates.disk_reserve_bytes < 0) {
      refuse("policy-invalid", "", "a limit is negative, or a deadline is not above 0",
             "correct the policy");
    }
  }

  void check_cluster() {
    for (const auto& gate : order_.gates()) {
      const auto* entry = find_gate(gate.name);
      if (entry == nullptr || !entry->refuses_plans) {
        continue;
      }
      for (auto& state : evaluate_causes(gate, order_.snapshot, nullptr)) {
        if (state.verdict != GateVerdict::kOpen) {
          refuse(state.code, state.node, state.reason, state.hint);
        }
      }
    }
  }

  void check_replaced() {
    if (order_.wanted.replaces.empty()) {
      return;
    }
    if (order_.replaced == nullptr) {
      refuse("unknown-node", order_.wanted.replaces, "the cluster has no node of that name",
             "see the names with: verger cluster show");
      return;
    }
    const auto& old = *order_.replaced;
    if (old.answered) {
      refuse("replaced-runs", old.name, "it answers: only a dead node is replaced",
             "stop it for good first, or restore it: verger restore plan --scope node");
      return;
    }
    if (old.read_only_replica == order_.votes()) {
      refuse("another-role", old.name,
             fmt::format("it is {}, and the new node is to be {}",
                         old.read_only_replica ? "a read-only replica" : "a voter",
                         order_.votes() ? "a voter" : "a read-only replica"),
             "give the new node the role of the one that it replaces (--as-replica)");
    }
    if (order_.votes() && !old.agent_answered && !order_.wanted.replaced_is_gone) {
      refuse("not-fenced", old.name,
             "its agent is silent, so nothing keeps its server from starting again beside the new "
             "node: two halves of the voters could each elect a leader",
             "make sure that it never starts again (take the machine away, or its data), then say "
             "so: --replaced-is-gone");
    }
  }

  const GrowthOrder& order_;
  std::vector<Refusal> refusals_;
};

}  // namespace

std::vector<Refusal> growth_refusals(const GrowthOrder& order) {
  return RefusingGrowth(order).all();
}

}  // namespace verger::planner::detail
