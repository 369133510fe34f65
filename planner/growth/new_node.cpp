#include "planner/growth/new_node.h"

#include <fmt/format.h>

#include "engine/base/quantities.h"
#include "planner/node_work.h"

namespace verger::planner::detail {

void RefusingNewNode::check_node(const NodeSnapshot& node, RefusalList& out) const {
  if (!node.has_agent()) {
    out.refuse("no-agent", node.name, "it has no agent that could restore its files",
               "install verger-agent on its machine, and name its URL (--agent)");
    return;
  }
  if (node.answered) {
    out.refuse("node-runs", node.name, "its server runs: its files cannot be replaced",
               "stop its server, and let its agent start it: nothing else may");
  }
  if (!node.agent_answered) {
    out.refuse("agent-gone", node.name,
               node.agent_problem.empty() ? "its agent does not answer" : node.agent_problem,
               "start verger-agent there, and enrol it (docs/operations/enrolment.md)");
    return;
  }
  if (node.wrong_identity) {
    out.refuse("another-database", node.name, node.problem,
               "its directory holds another cluster's database: check Db in the agent's file, and "
               "move those files away if they are not needed");
  }
  for (const auto& work : node.agent_work) {
    if (outlasts_server(work)) {
      out.refuse("agent-busy", node.name,
                 fmt::format("its agent is at work on its files: {} ({})", work.kind, work.id),
                 "wait until it ends, or cancel its run");
    }
  }
  check_agent(node, out);
}

void RefusingNewNode::check_agent(const NodeSnapshot& node, RefusalList& out) const {
  const auto* own = own_facts(node);
  if (own == nullptr) {
    out.refuse("not-looked-at", node.name, "its agent was not asked for the backup",
               "make the plan again");
    return;
  }
  if (!own->agent_problem.empty()) {
    out.refuse("agent-cannot-restore", node.name, own->agent_problem,
               "install the controller's version of verger-agent there");
    return;
  }
  if (!own->service_problem.empty()) {
    out.refuse("no-service-control", node.name, own->service_problem,
               "give it --service-unit, or --start-command and --stop-command, and run it as the "
               "user whose files they are");
  }
  if (!own->has_repository) {
    out.refuse("no-repository", node.name,
               fmt::format("its agent has no repository \"{}\"", repository_),
               "add the file of that name to the agent's --backup-repositories directory");
  } else if (!own->repository_problem.empty()) {
    out.refuse("repository-unreachable", node.name, own->repository_problem,
               "see to it that the machine reaches the repository, with the key it needs");
  } else if (!own->damage.empty()) {
    out.refuse("generation-damaged", node.name, own->damage,
               "choose another backup (--generation)");
  }
  if (own->keeps_former) {
    out.refuse(
        "former-files-kept", node.name,
        fmt::format("it keeps the files from before an earlier restore of backup {}, and these "
                    "are the way back",
                    facts_->generation.id),
        "look at what is in old-before-GENERATION of its directory, and move it away");
  }
  const auto bytes = facts_->generation.restored_bytes;
  const auto needed = bytes + disk_reserve_;
  if (own->room >= 0 && bytes > 0 && own->room < needed) {
    out.refuse("disk-too-small", node.name,
               fmt::format("{} are free, and {} are needed: {} of the backup, and the reserve",
                           human_bytes(own->room), human_bytes(needed), human_bytes(bytes)),
               "make room; the reserve is gates.disk_reserve of a policy");
  }
}

void RefusingNewNode::check_backup(const NodeSnapshot& node, RefusalList& out) const {
  const auto* own = own_facts(node);
  if (own == nullptr || !own->agent_problem.empty() || !own->has_repository ||
      !own->repository_problem.empty()) {
    return;
  }
  const auto& backup = facts_->generation;
  if (backup.id.empty()) {
    out.refuse("no-generation", "", facts_->generation_problem,
               "make one: verger backup create; see what there is with: verger backup list");
    return;
  }
  if (backup.cluster != snapshot_.cluster) {
    out.refuse("another-cluster", "",
               fmt::format("backup {} is of cluster \"{}\", not of \"{}\"", backup.id,
                           backup.cluster, snapshot_.cluster),
               "choose a backup of this cluster");
  }
  if (!backup.failed_check.empty()) {
    out.refuse("generation-damaged", "",
               fmt::format("the newest check of backup {} found damage: {}", backup.id,
                           backup.failed_check),
               "choose another one (--generation)");
  } else if (backup.verified.empty() && backup.drilled.empty()) {
    out.refuse("not-verified", "",
               fmt::format("backup {} was never verified, and no drill has restored it", backup.id),
               fmt::format("verify it: verger backup verify {} {}", snapshot_.cluster, backup.id));
  }
}

}  // namespace verger::planner::detail
