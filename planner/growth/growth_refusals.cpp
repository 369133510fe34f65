#include <fmt/format.h>

#include "planner/detail/refusal_list.h"
#include "planner/growth/growth_order.h"
#include "planner/growth/new_node.h"

namespace verger::planner::detail {
namespace {

class RefusingGrowth : private RefusalList {
 public:
  explicit RefusingGrowth(const GrowthOrder& order) : order_(order) {}

  std::vector<Refusal> all() {
    check_policy();
    refuse_closed(order_.gates(), order_.snapshot);
    check_replaced();
    if (order_.joins == nullptr) {
      refuse("no-node-named", "", "no new node is named, or its URL cannot be read",
             "name it: --node NAME=URL --agent URL");
    } else {
      const RefusingNewNode looks(order_.snapshot, order_.facts ? &*order_.facts : nullptr,
                                  order_.wanted.repository, order_.policy.gates.disk_reserve_bytes);
      looks.check_node(*order_.joins, *this);
      looks.check_backup(*order_.joins, *this);
    }
    return take();
  }

 private:
  void check_policy() {
    refuse_policy(GrowthPolicy::operation(), order_.policy);
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
};

}  // namespace

std::vector<Refusal> growth_refusals(const GrowthOrder& order) {
  return RefusingGrowth(order).all();
}

}  // namespace verger::planner::detail
