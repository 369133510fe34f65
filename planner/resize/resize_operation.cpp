#include <fmt/format.h>

#include "planner/detail/make_field.h"
#include "planner/operation.h"
#include "planner/resize/plan_resize.h"
#include "planner/resize/resize_policy.h"
#include "planner/resize/resize_steps.h"
#include "planner/restore/restore_policy.h"
#include "planner/restore/restore_steps.h"

namespace verger::planner {
namespace {

using detail::field;

/// Two quorums of a mixture of sizes always meet only from three voters on.
constexpr std::int32_t kLeastVoters = 3;

/// Names are parts of hashes and journals.
std::span<const Field> resize_fields() {
  static const std::vector<Field> kFields{
      field<&ResizePolicy::to>("to", "resize.to", "Number of voters afterwards: two more or fewer")
          .between(0, 99)
          .accepted(),
      field<&ResizePolicy::nodes>("nodes", "resize.nodes",
                                  "URLs of the new nodes, or NAME=URL, separated by commas")
          .accepted(),
      field<&ResizePolicy::agents>("agents", "resize.agents",
                                   "URLs of their agents, in the same order, separated by commas")
          .accepted(),
      field<&ResizePolicy::leaving>(
          "leaving", "resize.leaving",
          "Voters that leave, separated by commas; empty: such as do not lead")
          .accepted(),
      field<&ResizePolicy::leaving_are_gone>(
          "leavingAreGone", "resize.leaving_are_gone",
          "Whether those of them whose agents are silent will never start again")
          .accepted(),
      field<&ResizePolicy::repository>("repository", "resize.repository",
                                       "Name of the repository at the new nodes' agents")
          .accepted(),
      field<&ResizePolicy::generation>(
          "generation", "resize.generation",
          "Id of the backup; latest: the newest undamaged one of the cluster")
          .accepted(),
      field<&ResizePolicy::threads>("threads", "resize.threads", "Files copied in parallel")
          .between(1, 16)
          .accepted(),
      field<&ResizePolicy::bytes_per_second>("bytesPerSecond", "resize.bytes_per_second",
                                             "Bytes a second that each new node reads; 0: no limit")
          .size()
          .accepted(),
      field<&ResizePolicy::heal_existence_filter>(
          "healExistenceFilter", "heal_existence_filter",
          "Whether members make their existence filter anew when they are restarted")
          .shown()
          .later(),
      field<&ResizePolicy::resize_deadline_ms>(
          "resizeDeadlineMs", "deadlines.resize",
          "For all of a change of the number of voters; past it all is undone")
          .length(),
  };
  return kFields;
}

std::vector<FieldProblem> check_resize(const Policy& policy) {
  const auto& own = resize_of(policy);
  std::vector<FieldProblem> out;
  const auto problem = [&out](std::string message, std::string hint) {
    out.push_back({.place = "resize", .message = std::move(message), .hint = std::move(hint)});
  };
  if (own.threads < 1 || own.bytes_per_second < 0) {
    problem(fmt::format("threads is {} and rate {}", own.threads, own.bytes_per_second),
            "1 thread or more; a rate of 0 is no limit");
  }
  // A plan needs a number (size-not-possible) and both of each (no-node-named, no-agent); a policy
  // may leave them to the plan's parameters.
  if (own.to != 0 && (own.to < kLeastVoters || own.to % 2 == 0)) {
    problem(fmt::format("{} voters afterwards", own.to), "an odd number from 3 on (--to 5)");
  }
  if (!own.nodes.empty() && !own.agents.empty() &&
      listed_names(own.nodes).size() != listed_names(own.agents).size()) {
    problem("a new node without an agent, or an agent without its node",
            "name both of each (--node and --agent)");
  }
  return out;
}

/// No schedule changes the number of voters.
Need need_of_resize(const ClusterSnapshot& /*snapshot*/, const Policy& /*policy*/) {
  return {.not_yet = "voters are added or removed by an operator alone: make a plan and apply it"};
}

/// "n4=http://n4:2113", or the URL alone.
std::vector<JoiningNode> joining_voters(const Policy& policy) {
  const auto& own = resize_of(policy);
  const auto nodes = listed_names(own.nodes);
  const auto agents = listed_names(own.agents);
  std::vector<JoiningNode> out;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& text = nodes[i];
    const auto equals = text.find('=');
    const auto scheme = text.find("://");
    const bool has_name =
        equals != std::string::npos && (scheme == std::string::npos || equals < scheme);
    out.push_back({.name = has_name ? text.substr(0, equals) : std::string(),
                   .url = has_name ? text.substr(equals + 1) : text,
                   .agent_url = i < agents.size() ? agents[i] : std::string(),
                   .read_only_replica = false});
  }
  return out;
}

/// A dead one may come back for a moment, or go.
bool is_leaving(const Policy& policy, const NodeSnapshot& node) {
  const auto named = listed_names(resize_of(policy).leaving);
  return std::ranges::find(named, node.name) != named.end();
}

constexpr std::string_view kResizeSteps[] = {restore_steps::kRestore, resize_steps::kSize};

}  // namespace

ResizePolicy& resize_of(Policy& policy) { return std::get<ResizePolicy>(policy.operation); }
const ResizePolicy& resize_of(const Policy& policy) {
  return std::get<ResizePolicy>(policy.operation);
}

const Operation& ResizePolicy::operation() {
  // What its agents do is not listed: to other operations it is work that they must not begin
  // beside.
  static const Operation kResize{
      .name = "resize",
      .summary = "Plan another number of voters: two more, seeded from a backup, or two fewer",
      .example =
          "--to 5 --nodes n4=http://n4:2113,n5=http://n5:2113 "
          "--agents http://n4:2114,http://n5:2114 --repository main",
      .fields = resize_fields,
      .defaults = [] { return OperationPolicy(ResizePolicy()); },
      .plan = detail::plan_resize,
      .check = check_resize,
      .moves_leader = [](const Policy&) { return true; },
      .time_at_work_ms = detail::time_at_resize_ms,
      .need = need_of_resize,
      .may_restart = is_leaving,
      .joining = joining_voters,
      .work_steps = kResizeSteps,
      .agent_kinds = {}};
  return kResize;
}

}  // namespace verger::planner
