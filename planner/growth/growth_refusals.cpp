#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "engine/base/quantities.h"
#include "planner/detail/gate_checks.h"
#include "planner/gates.h"
#include "planner/growth/growth_order.h"
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
      check_new_node(*order_.joins);
      check_backup();
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

  void check_new_node(const NodeSnapshot& node) {
    if (!node.has_agent()) {
      refuse("no-agent", node.name, "it has no agent that could restore its files",
             "install verger-agent on its machine, and name its URL (--agent)");
      return;
    }
    if (node.answered) {
      refuse("node-runs", node.name, "its server runs: its files cannot be replaced",
             "stop its server, and let its agent start it: nothing else may");
    }
    if (!node.agent_answered) {
      refuse("agent-gone", node.name,
             node.agent_problem.empty() ? "its agent does not answer" : node.agent_problem,
             "start verger-agent there, and enrol it (docs/operations/enrolment.md)");
      return;
    }
    if (node.wrong_identity) {
      refuse("another-database", node.name, node.problem,
             "its directory holds another cluster's database: check Db in the agent's file, and "
             "move those files away if they are not needed");
    }
    for (const auto& work : node.agent_work) {
      const auto* kind = find_agent_kind(work.kind);
      if (kind == nullptr || (kind->touches_files && !kind->needs_server)) {
        refuse("agent-busy", node.name,
               fmt::format("its agent is at work on its files: {} ({})", work.kind, work.id),
               "wait until it ends, or cancel its run");
      }
    }
    check_agent(node);
  }

  void check_agent(const NodeSnapshot& node) {
    const auto* own = order_.own_facts();
    if (own == nullptr) {
      refuse("not-looked-at", node.name, "its agent was not asked for the backup",
             "make the plan again");
      return;
    }
    if (!own->agent_problem.empty()) {
      refuse("agent-cannot-restore", node.name, own->agent_problem,
             "install the controller's version of verger-agent there");
      return;
    }
    if (!own->service_problem.empty()) {
      refuse("no-service-control", node.name, own->service_problem,
             "give it --service-unit, or --start-command and --stop-command, and run it as the "
             "user whose files they are");
    }
    if (!own->has_repository) {
      refuse("no-repository", node.name,
             fmt::format("its agent has no repository \"{}\"", order_.wanted.repository),
             "add the file of that name to the agent's --backup-repositories directory");
    } else if (!own->repository_problem.empty()) {
      refuse("repository-unreachable", node.name, own->repository_problem,
             "see to it that the machine reaches the repository, with the key it needs");
    } else if (!own->damage.empty()) {
      refuse("generation-damaged", node.name, own->damage, "choose another backup (--generation)");
    }
    if (own->keeps_former) {
      refuse(
          "former-files-kept", node.name,
          fmt::format("it keeps the files from before an earlier restore of backup {}, and these "
                      "are the way back",
                      order_.facts->generation.id),
          "look at what is in old-before-GENERATION of its directory, and move it away");
    }
    const auto bytes = order_.facts->generation.restored_bytes;
    const auto needed = bytes + order_.policy.gates.disk_reserve_bytes;
    if (own->room >= 0 && bytes > 0 && own->room < needed) {
      refuse("disk-too-small", node.name,
             fmt::format("{} are free, and {} are needed: {} of the backup, and the reserve",
                         human_bytes(own->room), human_bytes(needed), human_bytes(bytes)),
             "make room; the reserve is gates.disk_reserve of a policy");
    }
  }

  void check_backup() {
    const auto* own = order_.own_facts();
    if (own == nullptr || !own->agent_problem.empty() || !own->has_repository ||
        !own->repository_problem.empty()) {
      return;
    }
    const auto& backup = order_.facts->generation;
    if (backup.id.empty()) {
      refuse("no-generation", "", order_.facts->generation_problem,
             "make one: verger backup create; see what there is with: verger backup list");
      return;
    }
    if (backup.cluster != order_.snapshot.cluster) {
      refuse("another-cluster", "",
             fmt::format("backup {} is of cluster \"{}\", not of \"{}\"", backup.id, backup.cluster,
                         order_.snapshot.cluster),
             "choose a backup of this cluster");
    }
    if (!backup.failed_check.empty()) {
      refuse("generation-damaged", "",
             fmt::format("the newest check of backup {} found damage: {}", backup.id,
                         backup.failed_check),
             "choose another one (--generation)");
    } else if (backup.verified.empty() && backup.drilled.empty()) {
      refuse(
          "not-verified", "",
          fmt::format("backup {} was never verified, and no drill has restored it", backup.id),
          fmt::format("verify it: verger backup verify {} {}", order_.snapshot.cluster, backup.id));
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
