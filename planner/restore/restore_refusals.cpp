#include "planner/restore/restore_refusals.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <tuple>

#include "engine/base/quantities.h"
#include "planner/detail/refusal_list.h"
#include "planner/gates.h"
#include "planner/node_work.h"
#include "planner/restore/restore_steps.h"

namespace verger::planner::detail {
namespace {

class RefusingRestore : private RefusalList {
 public:
  explicit RefusingRestore(const RestoreOrder& order) : order_(order) {}

  std::vector<Refusal> all() {
    check_policy();
    check_nodes();
    if (order_.wanted.task == RestoreTask::kRestore) {
      check_scope();
      check_generation();
      check_repositories();
      for (const auto* node : order_.nodes) {
        check_node(*node);
      }
    }
    return take();
  }

 private:
  void check_policy() {
    refuse_policy(RestorePolicy::operation(), order_.policy);
    const bool restores = order_.wanted.task == RestoreTask::kRestore;
    if (restores && order_.wanted.repository.empty()) {
      refuse("no-repository-named", "", "no repository is named",
             "name it (--repository); see them with: verger backup repositories");
    }
    if (order_.wanted.generation.empty() ||
        (!restores && order_.wanted.generation == restore_steps::kLatest)) {
      refuse("no-generation-named", "",
             fmt::format("generation is \"{}\"", order_.wanted.generation),
             restores ? "name a backup (--generation), or say latest"
                      : "name the backup that was restored; the report of its run has the id");
    }
    if (order_.wanted.restore_deadline_ms <= 0 || order_.wanted.check_deadline_ms <= 0 ||
        order_.policy.limits.undo_deadline_ms <= 0 ||
        order_.policy.limits.service_deadline_ms <= 0 || order_.policy.gates.lag_limit_bytes < 0 ||
        order_.policy.gates.disk_reserve_bytes < 0) {
      refuse("policy-invalid", "", "a limit is negative, or a deadline is not above 0",
             "correct the policy");
    }
  }

  void check_nodes() {
    if (order_.snapshot.nodes.empty()) {
      refuse("no-nodes", "", "the cluster has no nodes", "register it with its nodes");
    }
    for (const auto& name : order_.named) {
      if (order_.snapshot.find(name) == nullptr) {
        refuse("unknown-node", name, "the cluster has no node of that name",
               "see the names with: verger cluster show");
      }
    }
    for (const auto* node : order_.nodes) {
      if (!node->has_agent()) {
        refuse("no-agent", node->name, "it has no agent that could replace its files",
               "install verger-agent on that machine, and register its address; or restore it by "
               "hand with verger-db restore");
      } else if (!node->agent_answered) {
        refuse("agent-gone", node->name,
               node->agent_problem.empty() ? "its agent does not answer" : node->agent_problem,
               order_.whole_cluster()
                   ? "a node that is not seen stopped could bring the former history back: start "
                     "verger-agent there, or take the machine out of the cluster and remove it "
                     "with verger cluster update"
                   : "start verger-agent on that machine");
      }
    }
  }

  void check_scope() {
    if (order_.whole_cluster()) {
      check_whole_cluster();
    } else {
      check_single_nodes();
    }
  }

  void check_whole_cluster() {
    if (!order_.named.empty() && order_.nodes.size() < order_.snapshot.nodes.size()) {
      refuse("not-all-nodes", "",
             "the scope is the cluster, and only some of its nodes are named: the others would "
             "bring the former history back",
             "name none, or use the scope node");
    }
    for (const auto& stranger : order_.snapshot.unregistered) {
      refuse("unregistered-member", "",
             fmt::format("{} is a live member that is not registered: it would not be stopped, and "
                         "would bring the former history back",
                         stranger),
             "name all its nodes with verger cluster update");
    }
    if (!order_.snapshot.wrong_cluster.empty() && !order_.wanted.replace_database) {
      refuse("wrong-cluster", "", order_.snapshot.wrong_cluster,
             "check the URLs with: verger cluster show. If the databases are to be replaced all "
             "the same: --replace-database true");
    }
  }

  void check_single_nodes() {
    if (order_.named.empty()) {
      refuse("no-node-named", "", "the scope is node, and no node is named",
             "name it with --nodes; all nodes together are restored with --scope cluster");
      return;
    }
    if (order_.snapshot.voters() < 3 && std::ranges::any_of(order_.nodes, [](const auto* node) {
          return !node->read_only_replica;
        })) {
      refuse(
          "quorum-margin", "",
          order_.snapshot.voters() == 1
              ? std::string("it is the only voter: no other has its log")
              : fmt::format("there are {}: the cluster is down while one of them is stopped, "
                            "and none has the others' newer log",
                            counted(static_cast<std::int64_t>(order_.snapshot.voters()), "voter")),
          "use --scope cluster");
      return;
    }
    std::set<std::tuple<std::string, std::string, std::string>> seen;
    for (const auto* node : order_.nodes) {
      for (const auto& gate : order_.first_gates()) {
        const auto* entry = find_gate(gate.name);
        if (entry == nullptr || (!entry->refuses_plans && gate.name != "not-leader")) {
          continue;
        }
        for (auto& state : evaluate_causes(gate, order_.snapshot, node)) {
          if (state.verdict == GateVerdict::kOpen ||
              !seen.emplace(state.code, state.node, state.reason).second) {
            continue;
          }
          refuse(state.code, state.node, state.reason, hint_of(state, *node));
        }
      }
    }
  }

  static std::string hint_of(const GateState& state, const NodeSnapshot& node) {
    if (state.code == "is-leader") {
      return fmt::format(
          "move the leadership first: curl -X POST -d '' -u USER '{}/admin/node/resign', then make "
          "the plan again",
          node.url);
    }
    if (state.code == "no-leader" || state.code == "quorum-margin") {
      return state.hint + "; where too many are lost, restore all of them: --scope cluster";
    }
    if (state.code == "wrong-node") {
      return "if the node was set up anew and its database is to be replaced: "
             "--replace-database true; else correct its URLs with verger cluster update";
    }
    return state.hint;
  }

  void check_generation() {
    if (!order_.facts) {
      return;
    }
    const auto& backup = order_.facts->generation;
    if (!order_.facts->generation_problem.empty()) {
      refuse("no-generation", "", order_.facts->generation_problem,
             "see what there is with: verger backup list");
    } else if (!backup.id.empty() && backup.cluster != order_.snapshot.cluster) {
      refuse("another-cluster", "",
             fmt::format("backup {} is of cluster \"{}\", not of \"{}\"", backup.id, backup.cluster,
                         order_.snapshot.cluster),
             "choose a backup of this cluster; a new cluster is made of another's backup with "
             "verger-db restore");
    }
    if (!backup.failed_check.empty()) {
      refuse("generation-damaged", "",
             fmt::format("the newest check of backup {} found damage: {}", backup.id,
                         backup.failed_check),
             "choose another one (--generation), or repair its content with a full backup and "
             "verify it again");
    }
  }

  void check_repositories() {
    std::set<std::string> ids;
    for (const auto* node : order_.nodes) {
      if (const auto* own = order_.facts_of(*node);
          own != nullptr && own->has_repository && !own->repository_id.empty()) {
        ids.insert(own->repository_id);
      }
    }
    if (ids.size() > 1) {
      refuse("repositories-differ", "",
             fmt::format("what the agents call {} is not the same repository: {}",
                         order_.wanted.repository, fmt::join(ids, ", ")),
             "give them the same repository file; compare with: verger backup repositories");
    }
  }

  void check_node(const NodeSnapshot& node) {
    if (order_.whole_cluster() && node.wrong_identity && !order_.wanted.replace_database) {
      refuse("wrong-node", node.name,
             node.problem.empty() ? "it is not the node that was registered" : node.problem,
             "if the node was set up anew and its database is to be replaced: "
             "--replace-database true; else correct its URLs with verger cluster update");
    }
    if (const auto work = std::ranges::find_if(node.agent_work, outlasts_server);
        work != node.agent_work.end()) {
      refuse("agent-busy", node.name,
             fmt::format("its agent is at work on its files: {} ({})", work->kind, work->id),
             "wait until it ends, or cancel its run");
    }
    const auto* own = order_.facts_of(node);
    if (!order_.facts || !node.has_agent() || !node.agent_answered) {
      return;
    }
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
      refuse(
          "no-service-control", node.name, own->service_problem,
          "give it --service-unit, or --start-command and --stop-command, and run it as the user "
          "whose files they are");
    }
    check_repository(node, *own);
  }

  void check_repository(const NodeSnapshot& node, const RestoreNode& own) {
    const auto& backup = order_.facts->generation;
    if (!own.has_repository) {
      refuse("no-repository", node.name,
             fmt::format("its agent has no repository \"{}\"", order_.wanted.repository),
             "add the file of that name to the agent's --backup-repositories directory; compare "
             "with: verger backup repositories");
      return;
    }
    if (!own.repository_problem.empty()) {
      refuse("repository-unreachable", node.name, own.repository_problem,
             "see to it that the machine reaches the repository, with the key it needs");
      return;
    }
    if (!own.damage.empty()) {
      refuse("generation-damaged", node.name, own.damage, "choose another backup (--generation)");
    } else if (!backup.id.empty() && !own.has_generation) {
      refuse("no-generation", node.name,
             fmt::format("its agent does not find backup {} in {}", backup.id,
                         order_.wanted.repository),
             "see what there is with: verger backup list");
    }
    if (own.keeps_former) {
      refuse(
          "former-files-kept", node.name,
          fmt::format("it keeps the files from before an earlier restore of backup {}, and these "
                      "are the way back",
                      backup.id),
          fmt::format("remove them first: verger restore discard-old {} --generation {}",
                      order_.snapshot.cluster, backup.id));
    }
    const auto needed = backup.restored_bytes + order_.policy.gates.disk_reserve_bytes;
    if (own.room >= 0 && backup.restored_bytes > 0 && own.room < needed) {
      refuse("disk-too-small", node.name,
             fmt::format("{} are free, and {} are needed beside the present files: {} of the "
                         "backup, and the reserve",
                         human_bytes(own.room), human_bytes(needed),
                         human_bytes(backup.restored_bytes)),
             "make room: what an earlier restore kept goes with verger restore discard-old; the "
             "reserve is gates.disk_reserve of a policy");
    }
  }

  const RestoreOrder& order_;
};

}  // namespace

std::vector<Refusal> restore_refusals(const RestoreOrder& order) {
  return RefusingRestore(order).all();
}

}  // namespace verger::planner::detail
