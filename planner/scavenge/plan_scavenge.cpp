#include "planner/scavenge/plan_scavenge.h"

#include <algorithm>
#include <fmt/format.h>

#include "planner/detail/gate_checks.h"
#include "planner/detail/hours_note.h"
#include "planner/detail/text.h"
#include "planner/gates.h"
#include "planner/scavenge/auto_scavenge_stages.h"
#include "planner/scavenge/digest_stages.h"
#include "planner/scavenge/move_stage.h"
#include "planner/scavenge/offline_stages.h"
#include "planner/scavenge/scavenge_order.h"
#include "planner/scavenge/scavenge_refusals.h"
#include "planner/scavenge/scavenge_stage.h"

namespace verger::planner::detail {
namespace {

/// The stages in the order of the strategy.
class Strategies {
 public:
  Strategies(const ScavengeOrder& order, const Policy& policy, const History& history)
      : order_(order), policy_(policy), history_(history) {}

  Plan build() {
    build_stages();
    add_disks();
    return std::move(plan_);
  }

 private:
  void build_stages() {
    plan_.stages.reserve(3 * order_.included().size() + 3);
    plan_.cluster = order_.snapshot.cluster;
    plan_.policy = policy_;
    auto own = auto_scavenge_stages(order_);
    if (own) {
      plan_.stages.push_back(std::move(own->pause));
    }
    if (order_.scavenge.strategy == Strategy::kConcurrent) {
      build_concurrent();
    } else {
      if (order_.makes_point_first()) {
        plan_.stages.push_back(point_stage(order_));
        add(record_stage(order_));
      }
      build_one_by_one();
    }
    if (order_.includes_leader()) {
      if (order_.moves_leader()) {
        add_move(*order_.leader, "");
      }
      add_node(*order_.leader);
    }
    add(comparison_stage(order_));
    if (own) {
      plan_.stages.push_back(std::move(own->resume));
    }
    add_notes();
  }
  void add_disks() {
    for (auto& forecast : plan_.forecast) {
      const auto* node = order_.snapshot.find(forecast.node);
      if (node != nullptr && node->agent && node->agent->disk_free >= 0) {
        forecast.database_bytes = node->agent->database_bytes;
        forecast.disk_free = node->agent->disk_free;
        forecast.disk_needed = disk_needed(*node->agent, order_.policy.gates.disk_reserve_bytes,
                                           threads_of(order_, *node));
      }
    }
  }
  void add(std::optional<Stage> stage) {
    if (stage) {
      plan_.stages.push_back(*std::move(stage));
    }
  }
  void add_move(const NodeSnapshot& node, const std::string& if_deferred) {
    plan_.stages.push_back(move_stage(order_, node, if_deferred));
    add(work_stage(order_, node, if_deferred));
  }
  void add_node(const NodeSnapshot& node) {
    auto one = stage_of(node);
    if (const auto& chosen = order_.way(node); !chosen.reason.empty()) {
      for (auto& group : one.stage.groups) {
        for (auto& step : group) {
          step.reason += fmt::format("; {}: {}", to_string(chosen.way), chosen.reason);
        }
      }
      one.forecast.row = fmt::format("{} ({}): {}; {}", to_string(chosen.way), chosen.measure,
                                     chosen.reason, one.forecast.row);
    }
    plan_.stages.push_back(std::move(one.stage));
    plan_.forecast.push_back(std::move(one.forecast));
  }
  [[nodiscard]] NodeStage stage_of(const NodeSnapshot& node) const {
    switch (order_.way(node).way) {
      case ScavengeWay::kServer:
        break;
      case ScavengeWay::kOnline:
        return online_stage(order_, history_, node);
      case ScavengeWay::kOffline:
        return offline_stage(order_, history_, node);
    }
    return scavenge_stage(order_, history_, node);
  }
  [[nodiscard]] std::vector<std::string_view> names_of(ScavengeWay way) const {
    std::vector<std::string_view> out;
    for (const auto* node : order_.included()) {
      if (order_.way(*node).way == way) {
        out.emplace_back(node->name);
      }
    }
    return out;
  }

  void add_notes() {
    std::vector<std::string_view> blind;
    for (const auto* node : order_.included()) {
      if (!node->has_agent()) {
        blind.push_back(node->name);
      }
    }
    if (!blind.empty()) {
      plan_.notes.push_back(
          fmt::format("no agent on {}: which scavenge point it reaches is not seen, its digest is "
                      "not compared, and older controllers are not fenced off there",
                      fmt::join(blind, ", ")));
    }
    for (const auto* node : order_.included()) {
      for (const auto& gate : order_.scavenge_gates(*node)) {
        if (const auto* entry = find_gate(gate.name); entry != nullptr && !entry->per_node) {
          continue;  // of a cluster of a thousand nodes, all are looked at for each
        }
        for (const auto& state : evaluate_causes(gate, order_.snapshot, node)) {
          if (state.verdict == GateVerdict::kOpen && !state.reason.empty()) {
            plan_.notes.push_back(
                fmt::format("{}: {} (gate {})", node->name, state.reason, state.gate));
          }
        }
      }
    }
    if (!order_.includes_leader()) {
      plan_.notes.push_back("the leader is left out; scavenge it later, or its log stays as it is");
    } else if (!order_.moves_leader() && !order_.followers.empty()) {
      plan_.notes.push_back("the leader is scavenged while it leads, as the policy says");
    } else if (order_.followers.empty()) {
      plan_.notes.push_back("a single voter is scavenged while it leads");
    }
    if (order_.scavenge.strategy == Strategy::kOffline) {
      plan_.notes.push_back(
          "each node is stopped while its files are scavenged: clients connected to it go "
          "elsewhere, "
          "and until it is back another voter must not fail");
    } else if (const auto stopped = names_of(ScavengeWay::kOffline); !stopped.empty()) {
      plan_.notes.push_back(
          fmt::format("stopped in turn while its files are scavenged: {}; clients connected to it "
                      "go elsewhere, and until it is back another voter must not fail",
                      fmt::join(stopped, ", ")));
    }
    if (!names_of(ScavengeWay::kOnline).empty()) {
      plan_.notes.push_back(
          "chunks are switched through the servers' interface of redactions, as the policy "
          "consents; each node needs room for its new chunks beside the present ones");
    }
    add_hours_note(order_.snapshot, plan_.notes);
  }

  /// One follower makes the point; then all others work side by side. Each of them keeps serving,
  /// so no voter is down, but all of them are busy.
  void build_concurrent() {
    std::vector<const NodeSnapshot*> others;
    for (const auto* list : {&order_.followers, &order_.replicas}) {
      for (const auto* node : *list) {
        if (node != order_.creator) {
          others.push_back(node);
        }
      }
    }
    if (order_.creator != order_.leader) {
      add_node(*order_.creator);
      add(record_stage(order_));
    }
    if (others.empty()) {
      return;
    }
    Stage together;
    together.id = "scavenge-others";
    together.title = fmt::format("scavenge {} other nodes at once", others.size());
    together.deadline_ms = order_.scavenge.scavenge_deadline_ms;
    together.undo_deadline_ms = order_.policy.limits.undo_deadline_ms;
    Group before;
    Group main;
    for (const auto* node : others) {
      auto one = scavenge_stage(order_, history_, *node);
      plan_.forecast.push_back(std::move(one.forecast));
      for (auto& group : one.stage.groups) {
        for (auto& step : group) {
          // The others' scavenges are this run's own.
          for (auto& gate : step.gates) {
            if (gate.name == "no-scavenge-running" || gate.name == "no-scavenge-elsewhere") {
              gate.name = order_.scavenge.foreign == ForeignRule::kAdopt ? "agents-answer"
                                                                         : "no-scavenge-on-node";
            }
          }
          std::erase_if(step.gates, [](const Gate& gate) { return gate.name == "not-leader"; });
          (step.id.starts_with("scavenge-") ? main : before).push_back(std::move(step));
        }
      }
    }
    if (!before.empty()) {
      together.groups.push_back(std::move(before));
    }
    together.groups.push_back(std::move(main));
    plan_.stages.push_back(std::move(together));
    plan_.notes.push_back("all nodes but the first and the leader are busy at the same time");
  }

  void build_one_by_one() {
    for (const auto* node : order_.followers) {
      if (order_.moves_leader()) {
        add_move(*node, joined("scavenge-", node->name));
      }
      add_node(*node);
      if (node == order_.creator && !order_.makes_point_first()) {
        add(record_stage(order_));
      }
    }
    for (const auto* node : order_.replicas) {
      add_node(*node);
      if (node == order_.creator && !order_.makes_point_first()) {
        add(record_stage(order_));
      }
    }
  }

  const ScavengeOrder& order_;
  const Policy& policy_;
  const History& history_;
  Plan plan_;
};

}  // namespace

std::expected<Plan, std::vector<Refusal>> plan_scavenge(const ClusterSnapshot& snapshot,
                                                        const Policy& policy,
                                                        const History& history) {
  ScavengeOrder order(snapshot, policy);
  if (auto refusals = scavenge_refusals(order, history); !refusals.empty()) {
    return std::unexpected(std::move(refusals));
  }
  order.choose_creator();
  return Strategies(order, policy, history).build();
}

}  // namespace verger::planner::detail
