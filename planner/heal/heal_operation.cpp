#include <algorithm>
#include <fmt/format.h>

#include "planner/detail/make_field.h"
#include "planner/heal/heal_policy.h"
#include "planner/heal/heal_steps.h"
#include "planner/heal/plan_heal.h"
#include "planner/operation.h"

namespace verger::planner {
namespace {

using detail::field;

/// Names are parts of hashes and journals.
std::span<const Field> heal_fields() {
  static const std::vector<Field> kFields{
      field<&HealPolicy::part>("part", "heal.part", "What is made anew on a node").accepted(),
      field<&HealPolicy::nodes>(
          "nodes", "heal.nodes",
          "Names of the nodes, with commas between; none: those that have lost streams")
          .accepted(),
      field<&HealPolicy::heal_deadline_ms>(
          "healDeadlineMs", "deadlines.heal",
          "For one node, with its stop, its start and the reading of streams")
          .length(),
  };
  return kFields;
}

std::vector<FieldProblem> check_heal(const Policy& policy) {
  if (heal_of(policy).heal_deadline_ms <= 0) {
    return {{.place = "deadlines.heal",
             .message = "the deadline is not above 0",
             .hint = "correct the policy"}};
  }
  return {};
}

/// A schedule heals where there is something to heal.
Need need_of_heal(const ClusterSnapshot& snapshot, const Policy& policy) {
  const bool lost = std::ranges::any_of(snapshot.nodes, [](const NodeSnapshot& node) {
    return node.agent && node.agent->lost_streams > 0;
  });
  return lost || !heal_of(policy).nodes.empty()
             ? Need{}
             : Need{.not_yet = "no node's agent counts lost streams"};
}

constexpr std::string_view kHealWork[] = {heal_steps::kHealFilter};
constexpr AgentKind kHealKinds[] = {{.name = "heal_filter", .keeps_others_out = true}};

std::int64_t time_at_heal_ms(const Policy& /*policy*/, std::span<const PastDuration> durations) {
  std::int64_t out = 0;
  for (const auto& past : durations) {
    out += past.kind == heal_steps::kHealFilter ? past.duration_ms : 0;
  }
  return out;
}

}  // namespace

std::string_view to_string(HealPart /*part*/) { return "existence-filter"; }

HealPolicy& heal_of(Policy& policy) { return std::get<HealPolicy>(policy.operation); }
const HealPolicy& heal_of(const Policy& policy) { return std::get<HealPolicy>(policy.operation); }

const Operation& HealPolicy::operation() {
  static const Operation kHealing{.name = "heal",
                                  .summary = "Plan the cure of nodes that no longer find streams",
                                  .example = "--nodes n3",
                                  .fields = heal_fields,
                                  .defaults = [] { return OperationPolicy(HealPolicy()); },
                                  .plan = detail::plan_heal,
                                  .check = check_heal,
                                  .moves_leader = [](const Policy& /*policy*/) { return true; },
                                  .time_at_work_ms = time_at_heal_ms,
                                  .need = need_of_heal,
                                  .work_steps = kHealWork,
                                  .agent_kinds = kHealKinds};
  return kHealing;
}

}  // namespace verger::planner
