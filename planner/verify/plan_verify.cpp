#include "planner/verify/plan_verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

#include "planner/detail/hours_note.h"
#include "planner/detail/refusal_list.h"
#include "planner/detail/stages.h"
#include "planner/detail/text.h"
#include "planner/scavenge/scavenge_order.h"
#include "planner/scavenge/scavenge_stage.h"
#include "planner/verify/verify_policy.h"
#include "planner/verify/verify_steps.h"

namespace verger::planner::detail {
namespace {

constexpr std::int32_t kAttemptsToVerify = 5;

/// The gates of what only reads a node's files are those of its digest.
Policy as_digest(const Policy& policy) {
  Policy out = policy;
  out.operation = ScavengePolicy();
  return out;
}

class VerifyPlanning : private RefusalList {
 public:
  VerifyPlanning(const ClusterSnapshot& snapshot, const Policy& policy, const History& history)
      : snapshot_(snapshot),
        policy_(policy),
        wanted_(verify_of(policy)),
        history_(history),
        digest_(as_digest(policy)),
        order_(snapshot, digest_) {}

  std::expected<Plan, std::vector<Refusal>> build() {
    choose();
    if (!empty()) {
      return std::unexpected(take());
    }
    plan_.cluster = snapshot_.cluster;
    plan_.policy = policy_;
    for (const auto* node : chosen_) {
      add_node(*node);
    }
    add_notes();
    return std::move(plan_);
  }

 private:
  void choose() {
    refuse_policy(VerifyPolicy::operation(), policy_);
    const auto names = listed_names(wanted_.nodes);
    for (const auto& name : names) {
      const auto* node = snapshot_.find(name);
      if (node == nullptr) {
        refuse("unknown-node", "", fmt::format("the cluster has no node {}", name),
               "verger cluster show has the names");
      } else if (!node->has_agent()) {
        refuse("no-agent", node->name, "it has no agent that could look at its files",
               "install verger-agent on that machine");
      } else {
        chosen_.push_back(node);
      }
    }
    if (!names.empty()) {
      return;
    }
    for (const auto& node : snapshot_.nodes) {
      if (node.has_agent()) {
        chosen_.push_back(&node);
      } else {
        blind_.emplace_back(node.name);
      }
    }
    if (chosen_.empty()) {
      refuse(snapshot_.nodes.empty() ? "no-nodes" : "no-agent", "",
             "there is no node with an agent that could look at its files",
             "install verger-agent beside a server");
    }
  }

  void add_node(const NodeSnapshot& node) {
    Step step;
    step.id = joined("verify-", node.name);
    step.kind = std::string(verify_steps::kVerify);
    step.node = node.name;
    step.parameters = {{"bytesPerSecond", wanted_.rate_bytes},
                       {"onClose", to_string(policy_.pauses.on_close)},
                       {"onPause", to_string(policy_.pauses.on_pause)},
                       {"throttlePercent", static_cast<std::int64_t>(wanted_.throttle_percent)}};
    step.gates = order_.digest_gates();
    step.act = joined("have the agent of ", node.name,
                      " read its chunks, index and filters beside the running server");
    step.observe = "the agent has read all of them, and says what it found";
    step.reason = "damage that no reader has met yet is found while peers and backups are sound";
    step.attempts = kAttemptsToVerify;
    // Each byte is read three times: for its checksum, as records, and for the index.
    step.expected = expected_scavenge(history_, node,
                                      {.kind = step.kind,
                                       .slow_bytes_per_ms = 30'000,
                                       .throttle_percent = wanted_.throttle_percent});
    step.cost = StepCost{false, order_.margin(node)};
    Stage stage;
    stage.id = joined("verify-", node.name);
    stage.title = joined("verify the files of ", node.name);
    stage.deadline_ms = wanted_.node_deadline_ms;
    stage.undo_deadline_ms = policy_.limits.undo_deadline_ms;
    stage.groups.push_back(alone(std::move(step)));
    plan_.stages.push_back(std::move(stage));
    plan_.forecast.push_back({.node = node.name, .row = "its files are read; nothing is changed"});
  }

  void add_notes() {
    if (!blind_.empty()) {
      plan_.notes.push_back(
          fmt::format("not looked at, for want of an agent: {}", fmt::join(blind_, ", ")));
    }
    add_hours_note(snapshot_, plan_.notes);
  }

  const ClusterSnapshot& snapshot_;
  const Policy& policy_;
  const VerifyPolicy& wanted_;
  const History& history_;
  Policy digest_;
  ScavengeOrder order_;
  std::vector<const NodeSnapshot*> chosen_;
  std::vector<std::string_view> blind_;
  Plan plan_;
};

}  // namespace

std::expected<Plan, std::vector<Refusal>> plan_verify(const ClusterSnapshot& snapshot,
                                                      const Policy& policy,
                                                      const History& history) {
  return VerifyPlanning(snapshot, policy, history).build();
}

}  // namespace verger::planner::detail
