#include <algorithm>
#include <fmt/format.h>

#include "planner/detail/make_field.h"
#include "planner/operation.h"
#include "planner/restore/plan_restore.h"
#include "planner/restore/restore_policy.h"
#include "planner/restore/restore_steps.h"

namespace verger::planner {
namespace {

using detail::field;

/// Names are parts of hashes and journals.
std::span<const Field> restore_fields() {
  static const std::vector<Field> kFields{
      field<&RestorePolicy::task>("task", "restore.task",
                                  "Whether nodes are restored, or what a restore kept is removed")
          .accepted(),
      field<&RestorePolicy::scope>("scope", "restore.scope",
                                   "Single nodes of a cluster that lives on, or all of its nodes")
          .accepted(),
      field<&RestorePolicy::repository>("repository", "restore.repository",
                                        "Name of the repository at the agents")
          .accepted(),
      field<&RestorePolicy::generation>(
          "generation", "restore.generation",
          "Id of the backup; latest: the newest undamaged one of the cluster")
          .accepted(),
      field<&RestorePolicy::nodes>("nodes", "restore.nodes",
                                   "Names of the nodes with commas between (scope node)")
          .accepted(),
      field<&RestorePolicy::keep_old>("keepOld", "restore.keep_old",
                                      "Whether the former files stay on the nodes at the end")
          .accepted(),
      field<&RestorePolicy::replace_database>(
          "replaceDatabase", "restore.replace_database",
          "Whether nodes with another database than the registered one are restored, too")
          .accepted(),
      field<&RestorePolicy::threads>("threads", "restore.threads",
                                     "Files that each node copies in parallel")
          .between(1, 16)
          .accepted(),
      field<&RestorePolicy::bytes_per_second>("bytesPerSecond", "restore.bytes_per_second",
                                              "Bytes a second that each node reads; 0: no limit")
          .size()
          .accepted(),
      field<&RestorePolicy::restore_deadline_ms>(
          "restoreDeadlineMs", "deadlines.restore",
          "For stopping, restoring and starting all nodes, or each one with scope node")
          .length(),
      field<&RestorePolicy::check_deadline_ms>(
          "checkDeadlineMs", "deadlines.restored",
          "From the start of the servers until the cluster is seen whole, before an alert")
          .length(),
      field<&RestorePolicy::redact_again>(
          "redactAgain", "restore.redact_again",
          "Whether events that were redacted are redacted in the restored files, before the start")
          .accepted()
          .later(),
  };
  return kFields;
}

std::vector<FieldProblem> check_restore(const Policy& policy) {
  const auto& own = restore_of(policy);
  std::vector<FieldProblem> out;
  const auto problem = [&out](std::string message, std::string hint) {
    out.push_back({.place = "restore", .message = std::move(message), .hint = std::move(hint)});
  };
  if (own.threads < 1 || own.bytes_per_second < 0) {
    problem(fmt::format("threads is {} and rate {}", own.threads, own.bytes_per_second),
            "1 thread or more; a rate of 0 is no limit");
  }
  return out;
}

/// A schedule must not replace databases.
Need need_of_restore(const ClusterSnapshot& /*snapshot*/, const Policy& /*policy*/) {
  return {.not_yet = "a restore is begun by an operator alone: make a plan and apply it"};
}

/// The processes of the nodes to be restored may end, start and change their role at any time: that
/// is why they are.
bool may_restart(const Policy& policy, const NodeSnapshot& node) {
  const auto& own = restore_of(policy);
  const auto named = listed_names(own.nodes);
  return own.scope == RestoreScope::kCluster || std::ranges::find(named, node.name) != named.end();
}

constexpr std::string_view kReplacingSteps[] = {restore_steps::kRestore};
constexpr std::string_view kRestoreSteps[] = {restore_steps::kRestore, restore_steps::kDiscard};

}  // namespace

std::string_view to_string(RestoreTask task) {
  return task == RestoreTask::kRestore ? "restore" : "discard-old";
}
std::string_view to_string(RestoreScope scope) {
  return scope == RestoreScope::kNode ? "node" : "cluster";
}

std::vector<std::string> listed_names(std::string_view list) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string> out;
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    auto name = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const auto first = std::min(name.find_first_not_of(kBlanks), name.size());
    name.remove_prefix(first);
    name = name.substr(0, name.find_last_not_of(kBlanks) + 1);
    if (!name.empty()) {
      out.emplace_back(name);
    }
  }
  return out;
}

RestorePolicy& restore_of(Policy& policy) { return std::get<RestorePolicy>(policy.operation); }
const RestorePolicy& restore_of(const Policy& policy) {
  return std::get<RestorePolicy>(policy.operation);
}

const Operation& RestorePolicy::operation() {
  // What its agents do is not listed: to other operations it is work that they must not begin
  // beside.
  static const Operation kRestore{
      .name = "restore",
      .summary = "Plan the restore of nodes, or of a whole cluster, from a backup",
      .example = "--repository main --scope cluster",
      .fields = restore_fields,
      .defaults = [] { return OperationPolicy(RestorePolicy()); },
      .plan = detail::plan_restore,
      .check = check_restore,
      .moves_leader = [](const Policy&) { return false; },
      .time_at_work_ms = detail::time_at_restore_ms,
      .need = need_of_restore,
      .may_restart = may_restart,
      .replaces_data = kReplacingSteps,
      .work_steps = kRestoreSteps,
      .agent_kinds = {}};
  return kRestore;
}

}  // namespace verger::planner
