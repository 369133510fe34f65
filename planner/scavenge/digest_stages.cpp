#include "planner/scavenge/digest_stages.h"

#include <fmt/format.h>

#include "planner/detail/stages.h"
#include "planner/scavenge/scavenge_stage.h"

namespace verger::planner::detail {
namespace {

/// The node whose digest is taken before it is scavenged; nullptr: none can tell.
const NodeSnapshot* witness_of(const ScavengeOrder& order) {
  const NodeSnapshot* witness = nullptr;
  for (const auto* node : order.included()) {
    if (node != order.creator && node->has_agent()) {
      witness = node;
    }
  }
  return order.creator->has_agent() ? witness : nullptr;
}

Stage stage_of(const ScavengeOrder& order, std::string id, std::string title) {
  Stage stage;
  stage.id = std::move(id);
  stage.title = std::move(title);
  stage.deadline_ms = order.scavenge.digest_deadline_ms;
  stage.undo_deadline_ms = order.policy.limits.undo_deadline_ms;
  return stage;
}

/// Computing reads the node's whole log: at the scavenge's hours and pace, on one node at a time.
Step computing_step(const ScavengeOrder& order, const NodeSnapshot& node, std::string_view kind) {
  Step step;
  step.kind = kind;
  step.node = node.name;
  step.gates = order.digest_gates();
  step.parameters = Json::Object{{"throttlePercent", throttle_of(order, node)}};
  step.attempts = 3;
  return step;
}

}  // namespace

std::optional<Stage> record_stage(const ScavengeOrder& order) {
  const auto* witness = order.scavenge.compare_digests ? witness_of(order) : nullptr;
  if (witness == nullptr) {
    return std::nullopt;
  }
  auto step = computing_step(order, *witness, "record_digest");
  step.id = fmt::format("record-{}", witness->name);
  step.act = "ask its agent for the digest of its log up to the new point";
  step.observe = "the agent answered while the node had not reached the point";
  step.reason = "what can be read before it is scavenged is compared with what can be read after";
  auto stage = stage_of(order, "record", fmt::format("record what {} holds", witness->name));
  stage.groups.push_back(alone(std::move(step)));
  return stage;
}

std::optional<Stage> comparison_stage(const ScavengeOrder& order) {
  Json::Array names;
  auto stage = stage_of(order, "compare", "compare the nodes");
  stage.closing = true;
  const auto* witness = witness_of(order);
  for (const auto* node : order.included()) {
    if (!node->has_agent()) {
      continue;
    }
    names.emplace_back(node->name);
    auto step = computing_step(order, *node, "digest");
    step.id = fmt::format("digest-{}", node->name);
    // Where the records are the same, so is what can be read: that takes memory and temporary
    // files, and is computed where it was recorded before.
    add_parameter(step, "readable", std::string(node == witness ? "if-recorded" : "never"));
    step.act = "ask its agent for the digest of its log up to the shared point";
    step.observe = "the agent answered";
    step.reason = "what the scavenge left is compared with the other nodes";
    stage.groups.push_back(alone(std::move(step)));
  }
  if (!order.scavenge.compare_digests || names.size() < 2) {
    return std::nullopt;
  }
  Step step;
  step.id = "compare-digests";
  step.kind = "compare_digests";
  step.parameters =
      Json::Object{{"nodes", std::move(names)},
                   {"point", "shared"},
                   {"throttlePercent", static_cast<std::int64_t>(order.scavenge.throttle_percent)}};
  step.gates = order.digest_gates();
  step.act =
      "compare the digests; where they differ, ask each agent, one after the other, for what "
      "can be read";
  step.observe = "all agents answered; the first differing chunk is named where they differ";
  step.reason = "what the scavenge left must be the same everywhere";
  step.attempts = 3;
  stage.groups.push_back(alone(std::move(step)));
  return stage;
}

}  // namespace verger::planner::detail
