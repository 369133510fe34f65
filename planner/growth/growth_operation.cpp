#include <fmt/format.h>

#include "planner/detail/make_field.h"
#include "planner/growth/growth_policy.h"
#include "planner/growth/plan_growth.h"
#include "planner/operation.h"
#include "planner/restore/restore_steps.h"

namespace verger::planner {
namespace {

using detail::field;

/// Names are parts of hashes and journals.
std::span<const Field> growth_fields() {
  static const std::vector<Field> kFields{
      field<&GrowthPolicy::name>("name", "growth.name",
                                 "Name of the new node; empty: host:port of its URL")
          .accepted(),
      field<&GrowthPolicy::node>("node", "growth.node", "URL of the new node").accepted(),
      field<&GrowthPolicy::agent>("agent", "growth.agent", "URL of the new node's agent")
          .accepted(),
      field<&GrowthPolicy::role>("role", "growth.role",
                                 "What the new node is; a voter takes the place of a dead one")
          .accepted(),
      field<&GrowthPolicy::replaces>("replaces", "growth.replaces",
                                     "The dead node whose place the new one takes")
          .accepted(),
      field<&GrowthPolicy::replaced_is_gone>(
          "replacedIsGone", "growth.replaced_is_gone",
          "Whether the replaced node will never start again, where its agent cannot see to it")
          .accepted(),
      field<&GrowthPolicy::repository>("repository", "growth.repository",
                                       "Name of the repository at the new node's agent")
          .accepted(),
      field<&GrowthPolicy::generation>(
          "generation", "growth.generation",
          "Id of the backup; latest: the newest undamaged one of the cluster")
          .accepted(),
      field<&GrowthPolicy::threads>("threads", "growth.threads", "Files copied in parallel")
          .between(1, 16)
          .accepted(),
      field<&GrowthPolicy::bytes_per_second>("bytesPerSecond", "growth.bytes_per_second",
                                             "Bytes a second that are read; 0: no limit")
          .size()
          .accepted(),
      field<&GrowthPolicy::join_deadline_ms>(
          "joinDeadlineMs", "deadlines.join",
          "For restoring, starting and catching up of a new node; past it all is undone")
          .length(),
  };
  return kFields;
}

std::vector<FieldProblem> check_growth(const Policy& policy) {
  const auto& own = growth_of(policy);
  std::vector<FieldProblem> out;
  const auto problem = [&out](std::string message, std::string hint) {
    out.push_back({.place = "growth", .message = std::move(message), .hint = std::move(hint)});
  };
  if (own.threads < 1 || own.bytes_per_second < 0) {
    problem(fmt::format("threads is {} and rate {}", own.threads, own.bytes_per_second),
            "1 thread or more; a rate of 0 is no limit");
  }
  if (own.role == GrowthRole::kVoter && own.replaces.empty()) {
    problem("a new voter, and no node whose place it takes: the number of voters would be even",
            "name the dead one (replaces); from three voters to five: docs/operations/growing.md");
  }
  return out;
}

/// No schedule adds nodes.
Need need_of_growth(const ClusterSnapshot& /*snapshot*/, const Policy& /*policy*/) {
  return {.not_yet = "a node is added by an operator alone: make a plan and apply it"};
}

std::vector<JoiningNode> joining_nodes(const Policy& policy) {
  const auto& own = growth_of(policy);
  return {{.name = own.name,
           .url = own.node,
           .agent_url = own.agent,
           .read_only_replica = own.role == GrowthRole::kReadOnlyReplica}};
}

/// The dead one may come back for a moment, or go.
bool is_replaced(const Policy& policy, const NodeSnapshot& node) {
  return node.name == growth_of(policy).replaces;
}

constexpr std::string_view kGrowthSteps[] = {restore_steps::kRestore};

}  // namespace

std::string_view to_string(GrowthRole role) {
  return role == GrowthRole::kVoter ? "voter" : "read-only-replica";
}

GrowthPolicy& growth_of(Policy& policy) { return std::get<GrowthPolicy>(policy.operation); }
const GrowthPolicy& growth_of(const Policy& policy) {
  return std::get<GrowthPolicy>(policy.operation);
}

const Operation& GrowthPolicy::operation() {
  // What its agents do is not listed: to other operations it is work that they must not begin
  // beside.
  static const Operation kGrowth{
      .name = "growth",
      .summary =
          "Plan a new node, seeded from a backup: a read-only replica, or the place of a "
          "dead node",
      .example = "--name n4 --node http://n4:2113 --agent http://n4:2114 --repository main",
      .fields = growth_fields,
      .defaults = [] { return OperationPolicy(GrowthPolicy()); },
      .plan = detail::plan_growth,
      .check = check_growth,
      .moves_leader = [](const Policy&) { return false; },
      .time_at_work_ms = detail::time_at_growth_ms,
      .need = need_of_growth,
      .may_restart = is_replaced,
      .joining = joining_nodes,
      .work_steps = kGrowthSteps,
      .agent_kinds = {}};
  return kGrowth;
}

}  // namespace verger::planner
