#include "planner/heal/plan_heal.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

#include "planner/detail/hours_note.h"
#include "planner/detail/refusal_list.h"
#include "planner/detail/stages.h"
#include "planner/detail/text.h"
#include "planner/heal/heal_policy.h"
#include "planner/heal/heal_steps.h"
#include "planner/scavenge/move_stage.h"
#include "planner/scavenge/scavenge_order.h"
#include "planner/scavenge/scavenge_refusals.h"

namespace verger::planner::detail {
namespace {

constexpr std::int32_t kAttemptsToHeal = 3;
constexpr const char* kHealByHand =
    "by hand, node by node: stop the server, remove "
    "index/stream-existence/streamExistenceFilter.chk, start it";
/// Of a server, until it has made its filter anew from the index, and has caught up.
constexpr DurationRange kRestartWithNewFilter{.low_ms = 20'000, .high_ms = 900'000};

/// Who is stopped, in which order and behind which gates is what it is for an offline scavenge.
Policy as_stopping_scavenge(const Policy& policy) {
  Policy out = policy;
  ScavengePolicy scavenge;
  scavenge.strategy = Strategy::kOffline;
  scavenge.compare_digests = false;
  scavenge.scavenge_deadline_ms = heal_of(policy).heal_deadline_ms;
  out.operation = scavenge;
  return out;
}

class HealPlanning : private RefusalList {
 public:
  HealPlanning(const ClusterSnapshot& snapshot, const Policy& policy, const History& history)
      : policy_(policy),
        wanted_(heal_of(policy)),
        history_(history),
        stopping_(as_stopping_scavenge(policy)),
        order_(snapshot, stopping_),
        named_(listed_names(wanted_.nodes)) {}

  std::expected<Plan, std::vector<Refusal>> build() {
    check();
    if (!empty()) {
      return std::unexpected(take());
    }
    plan_.cluster = order_.snapshot.cluster;
    plan_.policy = policy_;
    for (const auto* node : order_.followers) {
      if (is_chosen(*node)) {
        add_move(*node, joined("heal-", node->name));
        add_node(*node);
      }
    }
    for (const auto* node : order_.replicas) {
      if (is_chosen(*node)) {
        add_node(*node);
      }
    }
    if (order_.leader != nullptr && is_chosen(*order_.leader)) {
      add_move(*order_.leader, "");
      add_node(*order_.leader);
    }
    add_notes();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] bool is_chosen(const NodeSnapshot& node) const {
    return named_.empty() ? node.agent && node.agent->lost_streams > 0
                          : std::ranges::find(named_, node.name) != named_.end();
  }

  void check() {
    refuse_policy(HealPolicy::operation(), policy_);
    for (const auto& name : named_) {
      if (order_.snapshot.find(name) == nullptr) {
        refuse("unknown-node", "", fmt::format("the cluster has no node {}", name),
               "verger cluster show has the names");
      }
    }
    const auto all = order_.included();
    if (std::ranges::none_of(all, [this](const auto* node) { return is_chosen(*node); })) {
      refuse("nothing-to-heal", "", "no node's agent counts streams that its node has lost",
             "name nodes to heal them all the same: --nodes n3");
      return;
    }
    for (auto& refusal : scavenge_refusals(order_, history_)) {
      const auto* node = order_.snapshot.find(refusal.node);
      // What only stands against stopping a node that is left alone.
      if (refusal.code.starts_with("offline-") && node != nullptr && !is_chosen(*node)) {
        continue;
      }
      if (refusal.code == "offline-needs-agent") {
        refusal.message = "it has no agent that could stop it and work on its files";
      }
      if (refusal.code.starts_with("offline-")) {
        refusal.hint = kHealByHand;
      } else if (refusal.code == "quorum-margin") {
        refusal.hint = fmt::format(
            "bring the other voters up first; in a cluster of one or two voters {}", kHealByHand);
      }
      add(std::move(refusal));
    }
  }

  void add_move(const NodeSnapshot& node, const std::string& if_deferred) {
    plan_.stages.push_back(move_stage(order_, node, if_deferred));
    if (auto work = work_stage(order_, node, if_deferred)) {
      plan_.stages.push_back(*std::move(work));
    }
  }

  void add_node(const NodeSnapshot& node) {
    Step step;
    step.id = joined("heal-", node.name);
    step.kind = std::string(heal_steps::kHealFilter);
    step.node = node.name;
    if (policy_.limits.service_deadline_ms != RunLimits{}.service_deadline_ms) {
      step.parameters.emplace("serviceDeadlineMs", policy_.limits.service_deadline_ms);
    }
    step.gates = order_.scavenge_gates(node);
    step.act = joined("stop ", node.name,
                      ", let its agent remove the checkpoint of the existence filter, start it");
    step.observe =
        "its agent counts no lost stream any longer and reads a sample, and the node has caught up";
    step.undo = joined("start ", node.name);
    step.reason = &node == order_.leader   ? "the leader comes last, after it resigned"
                  : node.read_only_replica ? "replicas follow the voters"
                                           : "one node at a time, so that a quorum stays";
    step.attempts = kAttemptsToHeal;
    step.expected = kRestartWithNewFilter;
    step.cost = StepCost{false, order_.margin(node)};
    Stage stage;
    stage.id = joined("heal-", node.name);
    stage.title = joined("make the existence filter of ", node.name, " anew");
    stage.deadline_ms = wanted_.heal_deadline_ms;
    stage.undo_deadline_ms = policy_.limits.undo_deadline_ms;
    stage.on_failure = FailureRule::kUndoAll;  // a node must not stay stopped
    stage.groups.push_back(alone(std::move(step)));
    plan_.stages.push_back(std::move(stage));
    const auto lost = node.agent ? node.agent->lost_streams : -1;
    plan_.forecast.push_back(
        {.node = node.name,
         .row = lost < 0
                    ? std::string("how many streams it has lost is not known")
                    : fmt::format("has lost {} streams; is stopped for a moment, and makes its "
                                  "filter anew while it starts",
                                  lost)});
  }

  void add_notes() {
    plan_.notes.push_back(
        "each of these nodes is restarted: clients connected to it go elsewhere, and until it is "
        "back another voter must not fail");
    add_hours_note(order_.snapshot, plan_.notes);
  }

  const Policy& policy_;
  const HealPolicy& wanted_;
  const History& history_;
  Policy stopping_;
  ScavengeOrder order_;
  std::vector<std::string> named_;
  Plan plan_;
};

}  // namespace

std::expected<Plan, std::vector<Refusal>> plan_heal(const ClusterSnapshot& snapshot,
                                                    const Policy& policy, const History& history) {
  return HealPlanning(snapshot, policy, history).build();
}

}  // namespace verger::planner::detail
