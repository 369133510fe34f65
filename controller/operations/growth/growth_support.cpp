#include "controller/operations/growth/growth_support.h"

#include <fmt/format.h>

#include "controller/executor/step_support.h"
#include "nodeagent/api/node.h"

namespace verger::controller::growth {

std::string why_not_a_member(const StepContext& context) {
  const auto replaces = steps::text_parameter(context.step, kReplacesParameter);
  if (const auto* old = replaces.empty() ? nullptr : context.snapshot.find(replaces);
      old != nullptr && old->answered) {
    return fmt::format(
        "{} runs again: with {} beside it there would be one voter too many; stop it for good",
        replaces, context.step.node);
  }
  const auto* node = context.node();
  if (node == nullptr || !node->answered) {
    return {};
  }
  const bool votes = steps::text_parameter(context.step, "role") == "voter";
  if (votes == node->read_only_replica) {
    return fmt::format(
        "{} runs as {}, and is to be {}: correct ReadOnlyReplica in its "
        "configuration",
        node->name, votes ? "a read-only replica" : "a voter",
        votes ? "a voter" : "a read-only replica");
  }
  const auto* leader = context.snapshot.leader();
  const auto own = api::parse_version(node->version);
  const auto others = leader == nullptr ? std::nullopt : api::parse_version(leader->version);
  if (own && others && *own != *others) {
    return fmt::format("{} is version {}, the leader {} is {}: install the same there", node->name,
                       node->version, leader->name, leader->version);
  }
  return {};
}

}  // namespace verger::controller::growth
