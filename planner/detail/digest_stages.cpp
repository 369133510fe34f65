#include "planner/detail/digest_stages.h"

#include <fmt/format.h>

#include "planner/detail/stages.h"

namespace verger::planner::detail {

std::optional<Stage> record_stage(const ScavengeOrder& order) {
  if (!order.policy.compare_digests) {
    return std::nullopt;
  }
  const NodeSnapshot* witness = nullptr;
  for (const auto* node : order.included()) {
    if (node != order.creator && node->has_agent()) {
      witness = node;
    }
  }
  if (witness == nullptr || !order.creator->has_agent()) {
    return std::nullopt;
  }
  Step step;
  step.id = fmt::format("record-{}", witness->name);
  step.kind = "record_digest";
  step.node = witness->name;
  step.gates = {{"right-cluster", 0}, {"agents-answer", 0}};
  step.act = "ask its agent for the digest of its log up to the new point";
  step.observe = "the agent answered while the node had not reached the point";
  step.reason = "what can be read before it is scavenged is compared with what can be read after";
  step.attempts = 3;
  Stage stage;
  stage.id = "record";
  stage.title = fmt::format("record what {} holds", witness->name);
  stage.deadline_ms = order.policy.digest_deadline_ms;
  stage.undo_deadline_ms = order.policy.undo_deadline_ms;
  stage.groups.push_back(alone(std::move(step)));
  return stage;
}

std::optional<Stage> comparison_stage(const ScavengeOrder& order) {
  Json::Array names;
  for (const auto* node : order.included()) {
    if (node->has_agent()) {
      names.emplace_back(node->name);
    }
  }
  if (!order.policy.compare_digests || names.size() < 2) {
    return std::nullopt;
  }
  Stage stage;
  stage.id = "compare";
  stage.title = "compare the nodes";
  stage.deadline_ms = order.policy.digest_deadline_ms;
  stage.undo_deadline_ms = order.policy.undo_deadline_ms;
  Step step;
  step.id = "compare-digests";
  step.kind = "compare_digests";
  step.parameters = Json::Object{{"nodes", std::move(names)}, {"point", "shared"}};
  step.gates = {{"right-cluster", 0}, {"agents-answer", 0}};
  step.act = "ask each agent for the digest of its node's log up to the shared point";
  step.observe = "all agents answered; the first differing chunk is named where they differ";
  step.reason = "what the scavenge left must be the same everywhere";
  step.attempts = 3;
  stage.groups.push_back(alone(std::move(step)));
  return stage;
}

}  // namespace verger::planner::detail
