#include "planner/restore/plan_restore.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/clock.h"
#include "planner/detail/gate_checks.h"
#include "planner/detail/preflight_facts.h"
#include "planner/detail/stages.h"
#include "planner/detail/text.h"
#include "planner/restore/redact_again.h"
#include "planner/restore/restore_notes.h"
#include "planner/restore/restore_order.h"
#include "planner/restore/restore_refusals.h"
#include "planner/restore/restore_steps.h"

namespace verger::planner::detail {
namespace {

using Nodes = std::vector<const NodeSnapshot*>;

/// A start that does not succeed is repeated by the agent; these are the requests.
constexpr std::int32_t kStartAttempts = 10;
constexpr std::int32_t kAttempts = 3;

Json::Array names_of(const Nodes& nodes) {
  Json::Array out;
  for (const auto* node : nodes) {
    out.emplace_back(node->name);
  }
  return out;
}

/// The stages of a restore that nothing stands against.
class Restoring {
 public:
  explicit Restoring(const RestoreOrder& order)
      : order_(order), scope_(to_string(order.wanted.scope)) {}

  Plan build() {
    plan_.cluster = order_.snapshot.cluster;
    plan_.policy = order_.policy;
    if (order_.wanted.task == RestoreTask::kDiscardOld) {
      plan_.stages.push_back(discard_stage(order_.wanted.generation));
      plan_.notes.emplace_back(
          "what is removed are files that an earlier restore kept: with them goes the way back to "
          "the state before it");
      return std::move(plan_);
    }
    if (order_.whole_cluster()) {
      add_stages(order_.nodes, "");
    } else {
      for (const auto* node : order_.nodes) {
        add_stages({node}, node->name);
      }
    }
    if (!order_.wanted.keep_old) {
      plan_.stages.push_back(discard_stage(order_.facts->generation.id));
    }
    plan_.forecast = restore_forecast(order_);
    plan_.notes = restore_notes(order_);
    return std::move(plan_);
  }

 private:
  /// `node`: empty with scope cluster.
  void add_stages(const Nodes& nodes, const std::string& node) {
    const auto suffix = node.empty() ? std::string() : "-" + node;
    Stage stage;
    stage.id = "restore" + suffix;
    stage.title = node.empty() ? "restore all nodes, or none" : "restore the files of " + node;
    stage.on_failure = FailureRule::kUndoAll;
    stage.atomic = true;
    stage.deadline_ms = order_.wanted.restore_deadline_ms;
    // A server that is started again gets the time that a start may take.
    stage.undo_deadline_ms =
        std::max(order_.policy.limits.undo_deadline_ms, order_.policy.limits.service_deadline_ms);
    stage.groups.push_back(alone(prepare_step(nodes, node)));
    stage.groups.push_back(on_each(nodes, &Restoring::stop_step));
    stage.groups.push_back(on_each(nodes, &Restoring::restore_step));
    if (order_.facts->redactions > 0 && order_.wanted.redact_again) {
      Group again;
      for (const auto* each : nodes) {
        again.push_back(redact_again_step(each->name, scope_, order_.facts->redactions));
      }
      stage.groups.push_back(std::move(again));
    }
    stage.groups.push_back(alone(commit_step(nodes, node)));
    stage.groups.push_back(on_each(nodes, &Restoring::start_step));
    plan_.stages.push_back(std::move(stage));

    Stage check;
    check.id = "check" + suffix;
    check.title = node.empty() ? "see the cluster whole again" : "see that " + node + " follows";
    check.on_failure = FailureRule::kStop;
    check.deadline_ms = order_.wanted.check_deadline_ms;
    check.undo_deadline_ms = order_.policy.limits.undo_deadline_ms;
    check.groups.push_back(alone(check_step(nodes, node)));
    plan_.stages.push_back(std::move(check));
  }

  Group on_each(const Nodes& nodes, Step (Restoring::*make)(const NodeSnapshot&) const) const {
    Group group;
    group.reserve(nodes.size());
    for (const auto* node : nodes) {
      group.push_back((this->*make)(*node));
    }
    return group;
  }

  Step step_of(std::string_view prefix, std::string_view kind, const std::string& node) const {
    Step step;
    step.id = node.empty() ? std::string(prefix) : joined(prefix, "-", node);
    step.kind = std::string(kind);
    step.node = node;
    step.expected = order_.expected(kind, node);
    return step;
  }

  Step prepare_step(const Nodes& nodes, const std::string& node) const {
    const auto& backup = order_.facts->generation;
    auto step = step_of("prepare", restore_steps::kPrepare, node);
    step.parameters = {{"generation", backup.id},
                       {"nodes", names_of(nodes)},
                       {"repository", order_.wanted.repository},
                       {"repositoryId", repository_id()},
                       {"restoredBytes", backup.restored_bytes},
                       {"scope", scope_}};
    step.gates = order_.first_gates();
    step.act = joined("look for backup ", backup.id, " and for room on each node once more");
    step.observe = "every agent finds both, and says where its node's log ends";
    step.reason = "no server is stopped for a backup that cannot be read";
    step.attempts = kAttempts;
    return step;
  }

  Step stop_step(const NodeSnapshot& node) const {
    auto step = step_of("stop", restore_steps::kStop, node.name);
    step.parameters = {{"scope", scope_}};
    if (order_.policy.limits.service_deadline_ms != RunLimits{}.service_deadline_ms) {
      add_parameter(step, "serviceDeadlineMs", order_.policy.limits.service_deadline_ms);
    }
    step.gates = order_.first_gates();
    step.act = joined("stop the server of ", node.name);
    step.observe = "its agent sees that no process has its files open";
    step.undo = joined("start the server of ", node.name, ", unless it was stopped before");
    step.reason = order_.whole_cluster() ? "no node with the former history may run"
                                         : "files of a running server cannot be replaced";
    step.attempts = kAttempts;
    step.cost = StepCost{false, order_.margin(node)};
    return step;
  }

  Step restore_step(const NodeSnapshot& node) const {
    const auto& backup = order_.facts->generation;
    auto step = step_of("restore", restore_steps::kRestore, node.name);
    step.parameters = {{"bytesPerSecond", order_.wanted.bytes_per_second},
                       {"generation", backup.id},
                       {"otherNode", backup.node != node.name},
                       {"repository", order_.wanted.repository},
                       {"repositoryId", repository_id()},
                       {"scope", scope_},
                       {"threads", order_.wanted.threads}};
    step.gates = order_.later_gates();
    step.act = joined("put the files of backup ", backup.id, " in the place of those of ",
                      node.name, ", which are kept");
    step.observe = "its agent has compared every file with the backup";
    step.undo = joined("revert ", node.name, " to its former files, before any start");
    step.reason = order_.whole_cluster() ? "all nodes get the same history"
                                         : "what is newer comes from the leader";
    step.attempts = kAttempts;
    step.cost = StepCost{false, order_.margin(node)};
    return step;
  }

  Step commit_step(const Nodes& nodes, const std::string& node) const {
    auto step = step_of("commit", restore_steps::kCommit, node);
    step.parameters = {{"nodes", names_of(nodes)}, {"scope", scope_}};
    step.act = "note that restored servers are started from here on";
    step.observe = node.empty() ? "all nodes are seen stopped and restored"
                                : "it is seen stopped and restored";
    step.reason = "once a restored server has run, no node is reverted by itself";
    return step;
  }

  Step start_step(const NodeSnapshot& node) const {
    auto step = step_of("start", "start_server", node.name);
    step.parameters = {{"graceMs", std::int64_t{0}}};
    step.act = joined("start the server of ", node.name,
                      "; at its first start it cuts its log, ends, and is started again");
    step.observe = "it answers, in its role";
    step.reason = order_.whole_cluster() ? "the restored nodes elect a leader"
                                         : "it takes what it lacks from the leader";
    step.attempts = kStartAttempts;
    return step;
  }

  Step check_step(const Nodes& nodes, const std::string& node) const {
    auto step = step_of("check", restore_steps::kCheck, node);
    step.parameters = {{"endPosition", order_.facts->generation.end_position},
                       {"lagLimitBytes", order_.policy.gates.lag_limit_bytes},
                       {"nodes", names_of(nodes)},
                       {"scope", scope_}};
    step.act = node.empty() ? "look at leader, epochs and positions, and read a stream"
                            : joined("look at the state and the position of ", node);
    step.observe = node.empty() ? "one leader, and all nodes in its history from the backup's end"
                                : "it follows the leader, and has caught up";
    step.reason = "started is not yet whole";
    step.attempts = kAttempts;
    return step;
  }

  Stage discard_stage(const std::string& generation) const {
    Stage stage;
    stage.id = "discard";
    stage.title = "remove what the restore kept of the former files";
    stage.on_failure = FailureRule::kSkipNode;
    stage.deadline_ms = order_.wanted.restore_deadline_ms;
    stage.undo_deadline_ms = order_.policy.limits.undo_deadline_ms;
    Group group;
    for (const auto* node : order_.nodes) {
      auto step = step_of("discard", restore_steps::kDiscard, node->name);
      step.parameters = {{"generation", generation}, {"scope", scope_}};
      step.act = joined("remove old-before-", generation, " on ", node->name);
      step.observe = "its agent has removed it";
      step.reason = "it takes disk, and is no longer needed";
      step.attempts = kAttempts;
      group.push_back(std::move(step));
    }
    stage.groups.push_back(std::move(group));
    return stage;
  }

  [[nodiscard]] std::string repository_id() const {
    for (const auto* node : order_.nodes) {
      if (const auto* own = order_.facts_of(*node); own != nullptr && !own->repository_id.empty()) {
        return own->repository_id;
      }
    }
    return {};
  }

  const RestoreOrder& order_;
  std::string_view scope_;
  Plan plan_;
};

}  // namespace

std::expected<Plan, std::vector<Refusal>> plan_restore(const ClusterSnapshot& snapshot,
                                                       const Policy& policy,
                                                       const History& history) {
  std::vector<Refusal> refusals;
  const bool needs_facts = restore_of(policy).task == RestoreTask::kRestore;
  auto found = facts_of_preflight(snapshot, parse_restore_facts, refusals);
  if (needs_facts && was_not_looked_at(snapshot)) {
    refusals.push_back({"not-looked-at", "", "the agents were not asked for the backup",
                        "make the plan with vergerd, which asks them first"});
  }
  const RestoreOrder order(snapshot, policy, history, std::move(found));
  auto others = restore_refusals(order);
  refusals.insert(refusals.end(), std::make_move_iterator(others.begin()),
                  std::make_move_iterator(others.end()));
  const bool complete = !needs_facts || (order.facts && !order.facts->generation.id.empty());
  if (refusals.empty() && complete && order.nodes.empty()) {
    refusals.push_back({"no-nodes", "", "no node is to be restored", "name nodes of the cluster"});
  }
  if (!refusals.empty() || !complete) {
    return std::unexpected(std::move(refusals));
  }
  return Restoring(order).build();
}

std::int64_t time_at_restore_ms(const Policy& /*policy*/, std::span<const PastDuration> durations) {
  std::int64_t out = 0;
  for (const auto& past : durations) {
    if (past.kind == restore_steps::kRestore) {
      out += past.duration_ms;
    }
  }
  return out;
}

}  // namespace verger::planner::detail
