#include "planner/redaction/plan_redaction.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "planner/backup/backup_steps.h"
#include "planner/detail/heal_parameter.h"
#include "planner/detail/hours_note.h"
#include "planner/detail/stages.h"
#include "planner/detail/text.h"
#include "planner/operation.h"
#include "planner/redaction/redaction_choice.h"
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

/// A node that is redacted while it runs is worked on as in a scavenge, the leader in its place.
Policy as_online_scavenge(const Policy& policy) {
  Policy out = as_offline_scavenge(policy);
  auto& scavenge = scavenge_of(out);
  scavenge.strategy = Strategy::kRolling;
  scavenge.leader = LeaderRule::kInPlace;
  return out;
}

/// The id of the repository that backups are deleted in, by the names of the nodes whose agents
/// have it: what the controller's preflight has seen.
std::map<std::string, std::string, std::less<>> repositories_of(const ClusterSnapshot& snapshot) {
  std::map<std::string, std::string, std::less<>> out;
  const auto* facts = snapshot.preflight ? snapshot.preflight->facts.as_object() : nullptr;
  if (facts == nullptr) {
    return out;
  }
  const auto found = facts->find("repositories");
  if (found == facts->end() || found->second.as_object() == nullptr) {
    return out;
  }
  for (const auto& [node, id] : *found->second.as_object()) {
    if (id.as_string() != nullptr) {
      out.emplace(node, *id.as_string());
    }
  }
  return out;
}

/// The nodes in their order, each with the way in which it is redacted.
struct RedactionOrder {
  RedactionOrder(const ClusterSnapshot& snapshot, const Policy& policy, const Policy& as_offline,
                 const Policy& as_online)
      : offline(snapshot, as_offline), online(snapshot, as_online) {
    for (const auto* node : offline.included()) {
      choices.emplace(node->name, choose_redaction(*node, redaction_of(policy)));
    }
  }
  [[nodiscard]] bool is_online(const NodeSnapshot& node) const {
    return choices.at(node.name).online;
  }
  [[nodiscard]] bool all_online() const {
    return std::ranges::all_of(choices, [](const auto& each) { return each.second.online; });
  }
  [[nodiscard]] bool all_offline() const {
    return std::ranges::none_of(choices, [](const auto& each) { return each.second.online; });
  }

  ScavengeOrder offline;
  ScavengeOrder online;
  std::map<std::string, RedactionChoice> choices{};
};

/// The stages of a run that nothing stands against.
class RedactionStages {
 public:
  RedactionStages(const RedactionOrder& ways, const Policy& policy, const History& history)
      : ways_(ways),
        order_(ways.offline),
        policy_(policy),
        wanted_(redaction_of(policy)),
        history_(history),
        events_(listed_events(wanted_.events)) {}

  Plan build() {
    plan_.cluster = order_.snapshot.cluster;
    plan_.policy = policy_;
    plan_.stages.push_back(look_stage());
    for (const auto* node : order_.followers) {
      if (!ways_.is_online(*node)) {
        add_move(*node, joined("redaction-", node->name));
      }
      add_node(*node);
    }
    for (const auto* node : order_.replicas) {
      add_node(*node);
    }
    if (order_.includes_leader()) {
      if (order_.moves_leader() && !ways_.is_online(*order_.leader)) {
        add_move(*order_.leader, "");
      }
      add_node(*order_.leader);
    }
    for (const auto* node : order_.included()) {
      plan_.stages.push_back(confirm_stage(*node));
    }
    plan_.stages.push_back(backups_stage());
    if (!wanted_.expire_backups.empty()) {
      add_expiry();
    }
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

  [[nodiscard]] Json::Object check_parameters(const NodeSnapshot& node) const {
    Json::Array events;
    for (const auto& event : events_) {
      events.emplace_back(event);
    }
    Json::Object out{{"events", std::move(events)}, {"metadata", wanted_.metadata}};
    if (ways_.is_online(node)) {
      out.emplace("online", true);
    }
    return out;
  }

  Stage look_stage() const {
    auto stage = stage_of("look", "find the events on all nodes", wanted_.redact_deadline_ms);
    Json::Array names;
    for (const auto* node : order_.included()) {
      names.emplace_back(node->name);
      Step step;
      step.id = joined("look-", node->name);
      step.kind = std::string(redaction_steps::kCheck);
      step.node = node->name;
      step.parameters = check_parameters(*node);
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
    auto step = ways_.is_online(node) ? online_step(node) : offline_step(node);
    step.id = joined("redact-", node.name);
    step.node = node.name;
    step.parameters.emplace("onClose", to_string(policy_.pauses.on_close));
    step.parameters.emplace("onPause", to_string(policy_.pauses.on_pause));
    step.reason += joined("; ", ways_.choices.at(node.name).reason);
    step.attempts = kAttemptsToRedact;
    auto stage = stage_of(joined("redaction-", node.name),
                          joined("redact on ", node.name, " (", to_string(node.role), ")"),
                          wanted_.redact_deadline_ms);
    // A node must not stay stopped; of one that runs nothing is to be undone.
    stage.on_failure = ways_.is_online(node) ? FailureRule::kStop : FailureRule::kUndoAll;
    stage.groups.push_back(alone(std::move(step)));
    plan_.stages.push_back(std::move(stage));
    plan_.forecast.push_back(
        {.node = node.name,
         .row =
             joined(ways_.is_online(node)
                        ? "serves on; its chunk files that have the events are replaced, and all "
                          "of its files are read once"
                        : "is stopped for the copies of the chunk files that have the events, "
                          "and for one reading of all files",
                    "; ", ways_.choices.at(node.name).reason)});
  }

  Step offline_step(const NodeSnapshot& node) const {
    Step step;
    step.kind = std::string(redaction_steps::kRedact);
    if (policy_.limits.service_deadline_ms != RunLimits{}.service_deadline_ms) {
      step.parameters.emplace("serviceDeadlineMs", policy_.limits.service_deadline_ms);
    }
    add_heal_filter(step, wanted_.heal_existence_filter);
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
    step.expected = expected_scavenge(
        history_, node,
        {.kind = step.kind, .slow_bytes_per_ms = 50'000, .around = kRestartOfServer});
    step.cost = StepCost{false, order_.margin(node)};
    return step;
  }

  Step online_step(const NodeSnapshot& node) const {
    Step step;
    step.kind = std::string(redaction_steps::kRedactOnline);
    step.gates = ways_.online.scavenge_gates(node);
    step.act = joined("let the agent of ", node.name,
                      " hold the chunk lock of its server, switch redacted copies of the chunk "
                      "files in, and search all files");
    step.observe =
        "its agent has read every record as redacted, the server gives readers no data of it, and "
        "no text was found";
    step.reason = &node == order_.leader   ? "the leader comes last, so that no node is filled "
                                             "again from one that still has the data"
                  : node.read_only_replica ? "replicas follow the voters"
                                           : "one node at a time";
    step.expected =
        expected_scavenge(history_, node, {.kind = step.kind, .slow_bytes_per_ms = 50'000});
    step.cost = StepCost{false, order_.voters == 0 ? 0 : quorum_margin_of_all()};
    return step;
  }
  /// The node stays up.
  [[nodiscard]] std::int32_t quorum_margin_of_all() const {
    return static_cast<std::int32_t>(order_.voters) -
           static_cast<std::int32_t>(order_.voters / 2 + 1);
  }

  /// One for each node: where one cannot be looked at, the others are.
  Stage confirm_stage(const NodeSnapshot& node) const {
    Step step;
    step.id = joined("confirm-", node.name);
    step.kind = std::string(redaction_steps::kConfirm);
    step.node = node.name;
    if (ways_.is_online(node)) {
      step.parameters.emplace("online", true);
    }
    step.gates = order_.digest_gates();
    step.act = joined("have the agent of ", node.name, " look for the records once more");
    step.observe = "all of them are redacted";
    step.reason =
        "a node that was filled again meanwhile, from one that was not redacted yet, has the data "
        "again";
    step.attempts = kAttemptsToRedact;
    step.expected = {500, 60'000};
    auto stage =
        stage_of(step.id, joined("look at ", node.name, " again"), wanted_.redact_deadline_ms);
    stage.on_failure = FailureRule::kSkipNode;
    stage.groups.push_back(alone(std::move(step)));
    return stage;
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

  /// A backup without the data has to be there before the others go. It is made on the first node
  /// in the order that has the repository; without any the preflight refuses the plan.
  void add_expiry() {
    const auto& repository = wanted_.expire_backups;
    const auto known = repositories_of(order_.snapshot);
    const auto nodes = order_.included();
    const auto found = std::ranges::find_if(
        nodes, [&known](const NodeSnapshot* node) { return known.contains(node->name); });
    const auto& source = found == nodes.end() ? *nodes.front() : **found;
    const auto id = known.find(source.name);
    const auto add = [&](std::string_view prefix, std::string_view kind, std::string title,
                         Json::Object parameters, std::string act, std::string observe) {
      Step step;
      step.id = joined(prefix, "-", source.name);
      step.kind = std::string(kind);
      step.node = source.name;
      step.parameters = std::move(parameters);
      step.parameters.emplace("repository", repository);
      if (id != known.end()) {
        step.parameters.emplace("repositoryId", id->second);
      }
      step.parameters.emplace("onClose", to_string(policy_.pauses.on_close));
      step.parameters.emplace("onPause", to_string(policy_.pauses.on_pause));
      step.gates = order_.digest_gates();
      step.act = std::move(act);
      step.observe = std::move(observe);
      step.reason = "the data is gone from backups, too, once the older ones are";
      step.attempts = kAttemptsToRedact;
      step.expected = {10'000, 86'400'000};
      auto stage = stage_of(step.id, std::move(title), wanted_.redact_deadline_ms);
      stage.groups.push_back(alone(std::move(step)));
      plan_.stages.push_back(std::move(stage));
    };
    add("backup", backup_steps::kCreate, joined("back ", source.name, " up"),
        {{"bytesPerSecond", std::int64_t{0}},
         {"digests", "logical"},
         {"full", true},
         {"mode", "live"},
         {"threads", 2},
         {"throttlePercent", 100}},
        joined("have the agent of ", source.name, " copy all of its files into ", repository),
        "its agent has stored a new full backup");
    add("verify", backup_steps::kVerify, "read the new backup",
        {{"bytesPerSecond", std::int64_t{0}}, {"made", source.name}, {"throttlePercent", 100}},
        "have its agent read all of the new backup", "nothing in it is damaged");
    add("expire", redaction_steps::kExpire, "delete the backups that may hold the data",
        {{"made", source.name}},
        joined("delete the backups of this cluster in ", repository,
               " that were made before, and that end behind the first of the events"),
        "they are no longer listed; their content goes with the first deletion a day later");
  }

  void add_notes() {
    plan_.notes.push_back(fmt::format("{} {}: {}. The data of a redacted event is gone for good",
                                      events_.size(), events_.size() == 1 ? "event" : "events",
                                      named_events()));
    if (ways_.all_offline()) {
      plan_.notes.push_back(
          "each node is stopped meanwhile: clients connected to it go elsewhere, and until it is "
          "back another voter must not fail");
    } else if (!ways_.all_online()) {
      plan_.notes.push_back(
          "a node that is not redacted while it runs is stopped meanwhile: clients connected to it "
          "go elsewhere, and until it is back another voter must not fail");
    }
    if (!wanted_.expire_backups.empty()) {
      plan_.notes.push_back(fmt::format(
          "ALL BACKUPS OF THIS CLUSTER IN {} THAT MAY HOLD THE DATA ARE DELETED, once a "
          "new one was verified; there is no way back to a state from before it",
          wanted_.expire_backups));
    }
    plan_.notes.push_back(
        "not reached: backups and disk snapshots, links and what projections made of the events, "
        "copies of readers, blocks of the disk that no file has any longer");
    add_hours_note(order_.snapshot, plan_.notes);
  }

  const RedactionOrder& ways_;
  const ScavengeOrder& order_;  ///< the offline one, whose order of nodes is that of both
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

/// With what speaks against the other way, where the plan might have taken that.
void add_why_not_online(Refusal& refusal, const RedactionOrder& ways, const Policy& policy) {
  const auto& wanted = redaction_of(policy);
  const auto* node = ways.offline.snapshot.find(refusal.node);
  if (wanted.strategy == RedactionStrategy::kAuto && node != nullptr &&
      refusal.code.starts_with("offline-")) {
    refusal.message += joined("; and ", ways.choices.at(node->name).reason);
  }
}

/// Its files are still to be changed by the scavenge, whose state names them. One that runs ends by
/// itself: the gates wait for it.
void add_unfinished_scavenge(const NodeSnapshot& node, const std::string& cluster,
                             std::vector<Refusal>& out) {
  if (!node.agent || !node.agent->unfinished || node.scavenge_running.value_or(false)) {
    return;
  }
  const auto& unfinished = *node.agent->unfinished;
  out.push_back(
      {"scavenge-unfinished", node.name,
       fmt::format("its scavenge to point {} is unfinished ({})", unfinished.point.number,
                   unfinished.stage),
       fmt::format("finish it first: verger plan scavenge {}, and the run of that plan", cluster)});
}

std::vector<Refusal> redaction_refusals(const RedactionOrder& ways, const Policy& policy,
                                        const History& history) {
  const auto& wanted = redaction_of(policy);
  auto out = scavenge_refusals(ways.all_online() ? ways.online : ways.offline, history);
  std::erase_if(out, [&ways](const Refusal& refusal) {
    const auto choice = ways.choices.find(refusal.node);
    return choice != ways.choices.end() && choice->second.online &&
           refusal.code.starts_with("offline-");
  });
  std::ranges::for_each(out, reword);
  for (auto& refusal : out) {
    add_why_not_online(refusal, ways, policy);
  }
  for (const auto* node : ways.offline.included()) {
    if (auto against = against_online(*node, wanted);
        wanted.strategy == RedactionStrategy::kOnline && !against.message.empty()) {
      out.push_back(std::move(against));
    }
    add_unfinished_scavenge(*node, ways.offline.snapshot.cluster, out);
  }
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
  const auto online = as_online_scavenge(policy);
  const RedactionOrder ways(snapshot, policy, offline, online);
  if (auto refusals = redaction_refusals(ways, policy, history); !refusals.empty()) {
    return std::unexpected(std::move(refusals));
  }
  return RedactionStages(ways, policy, history).build();
}

}  // namespace verger::planner::detail
