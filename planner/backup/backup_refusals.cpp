#include "planner/backup/backup_refusals.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

#include "engine/base/quantities.h"
#include "planner/detail/refusal_list.h"

namespace verger::planner::detail {
namespace {

class RefusingBackup : private RefusalList {
 public:
  explicit RefusingBackup(const BackupOrder& order) : order_(order), wanted_(order.wanted) {}

  std::vector<Refusal> all() {
    check_policy();
    check_names();
    if (order_.facts) {
      check_sources();
      check_repository();
      check_names_taken();
      check_room();
      check_generations();
      check_drills();
    }
    check_gates();
    return take();
  }

 private:
  void check_policy() {
    refuse_policy(BackupPolicy::operation(), order_.policy);
    if (wanted_.repository.empty()) {
      refuse("no-repository", "", "no repository is named",
             "name one of the agents' repositories: verger backup repositories CLUSTER");
    }
    if (wanted_.task == BackupTask::kCreate && !wanted_.generations.empty()) {
      refuse("policy-invalid", "", "backups are named, and a new one is to be made",
             "name them for the tasks verify, drill and delete");
    }
    const auto& limits = order_.policy.limits;
    const bool deadlines = wanted_.copy_deadline_ms > 0 && wanted_.verify_deadline_ms > 0 &&
                           wanted_.drill_deadline_ms > 0 && limits.undo_deadline_ms > 0 &&
                           limits.move_deadline_ms > 0 && limits.service_deadline_ms > 0;
    if (!deadlines || wanted_.rate_bytes < 0 || wanted_.max_age_ms < 0 ||
        limits.election_settle_ms < 0 || order_.policy.gates.lag_limit_bytes < 0) {
      refuse("policy-invalid", "", "a limit is negative, or a deadline is not above 0",
             "correct the policy");
    }
  }

  void check_names() {
    if (order_.snapshot.nodes.empty()) {
      refuse("no-nodes", "", "the cluster has no nodes", "register it with its nodes");
    }
    for (const auto& name : order_.unknown_names) {
      refuse("unknown-node", "", fmt::format("the cluster has no node \"{}\"", name),
             "verger cluster show has the names of its nodes");
    }
  }

  void check_sources() {
    const auto wanted = wanted_.task == BackupTask::kCreate ? wanted_.copies : 1;
    if (std::ssize(order_.sources) >= wanted) {
      return;
    }
    for (const auto& why : order_.unfit) {
      add(why);
    }
    if (wanted_.task != BackupTask::kCreate) {
      return;
    }
    if (order_.sources.empty()) {
      refuse(
          "no-up-to-date-source", "",
          wanted_.nodes.empty()
              ? fmt::format("no node of the kind \"{}\" is up to date, connected and has an "
                            "agent with the repository",
                            to_string(wanted_.source))
              : fmt::format("none of {} is up to date, connected and has an agent with the "
                            "repository",
                            wanted_.nodes),
          "see to what the other lines say, or allow another source: --source any, --nodes (in a "
          "policy backup.source, backup.nodes)");
      return;
    }
    refuse("not-enough-sources", "",
           fmt::format("{} {} can be copied, and {} copies are wanted", order_.sources.size(),
                       order_.sources.size() == 1 ? "node" : "nodes", wanted_.copies),
           "see to what the other lines say, allow other sources, or ask for fewer copies");
  }

  /// Agents that are to work together have to mean the same repository.
  void check_repository() {
    std::set<std::string> ids;
    std::vector<std::string> said;
    for (const auto* node : order_.workers) {
      if (const auto* agent = order_.facts->find_agent(node->name)) {
        ids.insert(agent->repository_id);
        said.push_back(fmt::format(
            "{}: {} ({})", node->name,
            agent->repository_id.empty() ? "nothing is stored there yet" : agent->repository_id,
            agent->location));
      }
    }
    if (ids.size() > 1) {
      refuse("repositories-differ", "",
             fmt::format("the agents mean different repositories by \"{}\": {}", wanted_.repository,
                         fmt::join(said, ", ")),
             "give all of them the same place, or name the nodes whose agents share one "
             "(backup.nodes)");
    }
  }

  /// Chains of backups and the rules of what is kept go by the nodes' names.
  void check_names_taken() {
    for (const auto& each : order_.facts->generations) {
      if (!each.cluster.empty() && each.cluster != order_.snapshot.cluster &&
          order_.snapshot.find(each.node) != nullptr) {
        refuse(
            "node-name-taken", each.node,
            fmt::format("the repository \"{}\" has backups of a node of that name of the cluster "
                        "\"{}\"",
                        wanted_.repository, each.cluster),
            "use a repository of its own for each cluster whose nodes have the same names");
        return;
      }
    }
  }

  void check_room() {
    if (wanted_.task != BackupTask::kCreate) {
      return;
    }
    for (const auto* node : order_.sources) {
      const auto* agent = order_.facts->find_agent(node->name);
      if (agent == nullptr || agent->free_bytes < 0) {
        continue;
      }
      // What compression makes of it, and what has changed since the last one, is not known.
      const bool whole = order_.facts->latest_of(node->name) == nullptr &&
                         agent->compression != "zstd" && node->agent;
      const auto reserve = order_.policy.gates.disk_reserve_bytes;
      const auto needed =
          reserve + (whole ? std::max<std::int64_t>(node->agent->database_bytes, 0) : 0);
      if (agent->free_bytes < needed) {
        refuse("repository-full", node->name,
               fmt::format("{} has {} free, and {} are needed{}", agent->location,
                           human_bytes(agent->free_bytes), human_bytes(needed),
                           whole ? " for the first backup of the node" : ""),
               "make room, delete older backups, or lower gates.disk_reserve");
      }
    }
  }

  void check_generations() {
    const bool is_delete = wanted_.task == BackupTask::kDelete;
    for (const auto& id : listed(wanted_.generations)) {
      const auto* found = order_.facts->find_generation(id);
      if (found == nullptr) {
        refuse("unknown-generation", "",
               fmt::format("the repository \"{}\" has no backup {}", wanted_.repository, id),
               "verger backup list CLUSTER has them");
      } else if (found->cluster != order_.snapshot.cluster && !found->cluster.empty()) {
        refuse("other-cluster", "",
               fmt::format("backup {} is of the cluster \"{}\"", id, found->cluster),
               "name a backup of this cluster");
      } else if (!found->damage.empty() && !is_delete) {
        refuse("generation-damaged", "",
               fmt::format("backup {} cannot be read: {}", id, found->damage),
               "name another one, and make a new one");
      }
    }
    const bool looks = wanted_.task == BackupTask::kVerify || wanted_.task == BackupTask::kDrill;
    if (looks && wanted_.generations.empty() &&
        std::ranges::none_of(order_.snapshot.nodes, [this](const NodeSnapshot& node) {
          return order_.facts->latest_of(node.name) != nullptr;
        })) {
      refuse("no-backup", "",
             fmt::format("the repository \"{}\" has no backup of this cluster", wanted_.repository),
             "make one: verger backup create CLUSTER");
    }
  }

  void check_drills() {
    const bool due = wanted_.task == BackupTask::kDrill ||
                     (wanted_.task == BackupTask::kCreate &&
                      std::ranges::any_of(order_.sources, [this](const auto* node) {
                        return order_.drill_is_due(node->name);
                      }));
    if (!due || order_.workers.empty() || order_.drill_worker("") != nullptr) {
      return;
    }
    for (const auto* node : order_.workers) {
      const auto* agent = order_.facts->find_agent(node->name);
      refuse("no-scratch", node->name,
             fmt::format("its agent cannot drill: {}",
                         agent == nullptr ? "it was not asked" : agent->drill_problem),
             "give an agent a directory for it (--backup-scratch), or make backups without drills "
             "(backup.drill_every: 0)");
    }
  }

  void check_gates() {
    const bool copies = wanted_.task == BackupTask::kCreate;
    auto gates = copies ? order_.copy_gates() : order_.repository_gates();
    // Of the sources that is settled already.
    std::erase_if(gates, [](const Gate& gate) { return gate.name == "node-current"; });
    if (!copies || order_.sources.empty()) {
      refuse_closed(gates, order_.snapshot);
    }
    for (const auto* node : order_.sources) {
      if (copies) {
        refuse_closed(gates, order_.snapshot, node);
      }
    }
  }

  const BackupOrder& order_;
  const BackupPolicy& wanted_;
};

}  // namespace

std::vector<Refusal> backup_refusals(const BackupOrder& order) {
  return RefusingBackup(order).all();
}

}  // namespace verger::planner::detail
