#include "planner/redaction/plan_redaction.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tuple>

#include "engine/base/clock.h"
#include "planner/detail/stages.h"
#include "planner/detail/text.h"
#include "planner/operation.h"
#include "planner/redaction/redaction_policy.h"
#include "planner/redaction/redaction_steps.h"
#include "planner/scavenge/move_stage.h"
#include "planner/scavenge/scavenge_order.h"
#include "planner/scavenge/scavenge_refusals.h"
#include "planner/scavenge/scavenge_stage.h"

namespace verger::planner::detail {
namespace {

/// Of a server, until it has caught up again; a large index takes minutes to open.
constexpr DurationRange kRestartOfServer{.low_ms = 20'000, .high_ms = 300'000};
constexpr std::int32_t kAttemptsToRedact = 3;
/// So many events are named in a text; the parameters have all.
constexpr std::size_t kNamedInTexts = 5;

/// Who is stopped, in which order and behind which gates is what it is for an offline scavenge.
Policy as_offline_scavenge(const Policy& policy) {
  Policy out = policy;
  ScavengePolicy scavenge;
  scavenge.strategy = Strategy::kOffline;
  scavenge.compare_digests = false;
  scavenge.scavenge_deadline_ms = redaction_of(policy).redact_deadline_ms;
  out.operation = scavenge;
  return out;
}

/// The stages of a run that nothing stands against.
class RedactionStages {
 public:
  RedactionStages(const ScavengeOrder& order, const Policy& policy, const History& history)
      : order_(order),
        policy_(policy),
        wanted_(redaction_of(policy)),
        history_(history),
        events_(listed_events(wanted_.events)) {}

  Plan build() {
    plan_.cluster = order_.snapshot.cluster;
    plan_.policy = policy_;
    plan_.stages.push_back(look_stage());
    for (const auto* node : order_.followers) {
      add_move(*node, joined("redaction-", node->name));
      add_node(*node);
    }
    for (const auto* node : order_.replicas) {
      add_node(*node);
    }
    if (order_.includes_leader()) {
      if (order_.moves_leader()) {
        add_move(*order_.leader, "");
      }
      add_node(*order_.leader);
    }
    plan_.stages.push_back(backups_stage());
    add_notes();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] Stage stage_of(std::string id, std::string title, std::int64_t deadline_ms) const {
    Stage stage;
    stage.id = std::move(id);
    stage.title = std::move(title);
    stage.deadline_ms = deadline_ms;
    stage.undo_deadline_ms = policy_.limits.undo_deadline_ms;
    return stage;
  }
  [[nodiscard]] std::string named_events() const {
    const auto some = std::min(events_.size(), kNamedInTexts);
    auto out = fmt::format(
        "{}",
        fmt::join(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(some), ", "));
    return some == events_.size() ? out : fmt::format("{} and {} more", out, events_.size() - some);
  }

  Stage look_stage() const {
    auto stage = stage_of("look", "find the events on all nodes", wanted_.redact_deadline_ms);
    Json::Array names;
    Json::Array events;
    for (const auto& event : events_) {
      events.emplace_back(event);
    }
    for (const auto* node : order_.included()) {
      names.emplace_back(node->name);
      Step step;
      step.id = joined("look-", node->name);
      step.kind = std::string(redaction_steps::kCheck);
      step.node = node->name;
      step.parameters = {{"events", events}, {"metadata", wanted_.metadata}};
      step.gates = order_.digest_gates();
      step.act = joined("have the agent of ", node->name, " find ", named_events(),
                        " in its files, beside the running server");
      step.observe = "it names the records, and refuses none";
      step.reason = "nothing is changed anywhere before all nodes are known to have the same";
      step.attempts = kAttemptsToRedact;
      step.expected = {500, 60'000};
      stage.groups.push_back(alone(std::move(step)));
    }
    Step step;
    step.id = "agree";
    step.kind = std::string(redaction_steps::kAgree);
    step.parameters = {{"nodes", std::move(names)}};
    step.gates = {{"cluster-identity", 0}};
    step.act = "make one list of what the nodes have";
    step.observe = "each record is the same on each node that has it";
    step.reason = "every node redacts by this list";
    step.attempts = 2;
    step.expected = {0, 1'000};
    stage.groups.push_back(alone(std::move(step)));
    return stage;
  }

  void add_move(const NodeSnapshot& node, const std::string& if_deferred) {
    plan_.stages.push_back(move_stage(order_, node, if_deferred));
    if (auto work = work_stage(order_, node, if_deferred)) {
      plan_.stages.push_back(*std::move(work));
    }
  }

  void add_node(const NodeSnapshot& node) {
    Step step;
    step.id = joined("redact-", node.name);
    step.kind = std::string(redaction_steps::kRedact);
    step.node = node.name;
    step.parameters.emplace("onClose", to_string(policy_.pauses.on_close));
    step.parameters.emplace("onPause", to_string(policy_.pauses.on_pause));
    if (policy_.limits.service_deadline_ms != RunLimits{}.service_deadline_ms) {
      step.parameters.emplace("serviceDeadlineMs", policy_.limits.service_deadline_ms);
    }
    step.gates = order_.scavenge_gates(node);
    step.act = joined("stop ", node.name,
                      ", let its agent redact the events in its files and search all of them, "
                      "start it");
    step.observe =
        "its agent has read every record as redacted and found no text, and the node has caught up";
    step.undo = joined("start ", node.name);
    step.reason = &node == order_.leader   ? "the leader comes last, after it resigned"
                  : node.read_only_replica ? "replicas follow the voters"
                                           : "one node at a time, so that a quorum stays";
    step.attempts = kAttemptsToRedact;
    step.expected = expected_scavenge(
        history_, node,
        {.kind = step.kind, .slow_bytes_per_ms = 50'000, .around = kRestartOfServer});
    step.cost = StepCost{false, order_.margin(node)};
    auto stage = stage_of(joined("redaction-", node.name),
                          joined("redact on ", node.name, " (", to_string(node.role), ")"),
                          wanted_.redact_deadline_ms);
    stage.on_failure = FailureRule::kUndoAll;  // a node must not stay stopped
    stage.groups.push_back(alone(std::move(step)));
    plan_.stages.push_back(std::move(stage));
    plan_.forecast.push_back(
        {.node = node.name,
         .row = "is stopped for the copies of the chunk files that have the events, and for one "
                "reading of all files"});
  }

  Stage backups_stage() const {
    Step step;
    step.id = "backups";
    step.kind = std::string(redaction_steps::kBackups);
    step.gates = {{"cluster-identity", 0}};
    step.act = "list the backups that may hold the data";
    step.observe = "the agents have shown their catalogues, or why not";
    step.reason = "a backup is not changed, and a restore of it brings the data back";
    step.attempts = 2;
    step.expected = {500, 60'000};
    auto stage = stage_of("backups", "look for backups", policy_.limits.move_deadline_ms);
    stage.groups.push_back(alone(std::move(step)));
    return stage;
  }

  void add_notes() {
    plan_.notes.push_back(fmt::format("{} {}: {}. The data of a redacted event is gone for good",
                                      events_.size(), events_.size() == 1 ? "event" : "events",
                                      named_events()));
    plan_.notes.push_back(
        "each node is stopped meanwhile: clients connected to it go elsewhere, and until it is "
        "back "
        "another voter must not fail");
    plan_.notes.push_back(
        "not reached: backups and disk snapshots, links and what projections made of the events, "
        "copies of readers, blocks of the disk that no file has any longer");
    if (order_.snapshot.hours && !order_.snapshot.hours->open) {
      plan_.notes.push_back(
          fmt::format("closed now ({}); a run waits until {}", order_.snapshot.hours->reason,
                      order_.snapshot.hours->until ? format_ticks(*order_.snapshot.hours->until)
                                                   : "further notice"));
    }
  }

  const ScavengeOrder& order_;
  const Policy& policy_;
  const RedactionPolicy& wanted_;
  const History& history_;
  std::vector<std::string> events_;
  Plan plan_;
};

/// What the rules of an offline scavenge say, in the words of a redaction.
void reword(Refusal& refusal) {
  if (refusal.code == "offline-needs-agent") {
    refusal.message = "it has no agent that could stop it and redact its files";
    refusal.hint = "install verger-agent on that machine, and register its address";
  } else if (refusal.code == "offline-wrong-user") {
    refusal.hint = "run the agent as the user whose the files are";
  } else if (refusal.code == "quorum-margin" && refusal.node.empty()) {
    refusal.hint =
        "with fewer than three voters that are up the cluster would be down with the one that is "
        "stopped: verger-db redact does it by hand, node by node";
  }
}

std::vector<Refusal> redaction_refusals(const ScavengeOrder& order, const Policy& policy,
                                        const History& history) {
  auto out = scavenge_refusals(order, history);
  std::ranges::for_each(out, reword);
  const auto& wanted = redaction_of(policy);
  for (auto& problem : RedactionPolicy::operation().check(policy)) {
    out.push_back({"event-refused", "", std::move(problem.message), std::move(problem.hint)});
  }
  if (listed_events(wanted.events).empty()) {
    out.push_back({"no-events", "", "no event is named",
                   "name them: --events 12@orders-7, or --events-file FILE"});
  }
  if (wanted.reason.empty()) {
    out.push_back({"no-reason", "", "no reason is given",
                   "the erasure report has to say why: --reason TEXT"});
  }
  std::ranges::sort(
      out, {}, [](const Refusal& each) { return std::tie(each.node, each.code, each.message); });
  return out;
}

}  // namespace

std::expected<Plan, std::vector<Refusal>> plan_redaction(const ClusterSnapshot& snapshot,
                                                         const Policy& policy,
                                                         const History& history) {
  const auto offline = as_offline_scavenge(policy);
  const ScavengeOrder order(snapshot, offline);
  if (auto refusals = redaction_refusals(order, policy, history); !refusals.empty()) {
    return std::unexpected(std::move(refusals));
  }
  return RedactionStages(order, policy, history).build();
}

}  // namespace verger::planner::detail
