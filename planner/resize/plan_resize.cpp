#include "planner/resize/plan_resize.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/quantities.h"
#include "planner/detail/heal_parameter.h"
#include "planner/detail/preflight_facts.h"
#include "planner/detail/stages.h"
#include "planner/detail/text.h"
#include "planner/growth/growth_steps.h"
#include "planner/resize/resize_order.h"
#include "planner/resize/resize_steps.h"
#include "planner/restore/redact_again.h"
#include "planner/restore/restore_order.h"
#include "planner/restore/restore_steps.h"

namespace verger::planner::detail {
namespace {

/// A start that does not succeed is repeated by the agent; these are the requests.
constexpr std::int32_t kStartAttemptsOfVoter = 10;
constexpr std::int32_t kAttemptsOfResize = 3;
constexpr DurationRange kRestart{.low_ms = 5'000, .high_ms = 300'000};

using Voters = std::vector<const NodeSnapshot*>;

/// The stage of a change that nothing stands against.
class Resizing {
 public:
  explicit Resizing(const ResizeOrder& order) : order_(order) {}

  Plan build() {
    plan_.cluster = order_.snapshot.cluster;
    plan_.policy = order_.policy;
    stage_.id = fmt::format("resize-{}-{}", order_.from, order_.wanted.to);
    stage_.title = fmt::format("{} voters instead of {}, or leave all as it is", order_.wanted.to,
                               order_.from);
    stage_.on_failure = FailureRule::kUndoAll;
    stage_.atomic = true;
    stage_.deadline_ms = order_.wanted.resize_deadline_ms;
    // One node after the other goes back.
    const auto one =
        std::max(order_.policy.limits.undo_deadline_ms, order_.policy.limits.service_deadline_ms);
    stage_.undo_deadline_ms = one * static_cast<std::int64_t>(order_.stays.size() + 1);
    if (order_.grows()) {
      grow();
    } else {
      shrink();
    }
    plan_.stages.push_back(std::move(stage_));
    plan_.notes = resize_notes(order_);
    return std::move(plan_);
  }

 private:
  void grow() {
    stage_.groups.push_back(on_each(order_.joins, &Resizing::prepare));
    stage_.groups.push_back(on_each(order_.joins, &Resizing::stop_new));
    stage_.groups.push_back(on_each(order_.joins, &Resizing::restore));
    if (order_.restore()->redactions > 0) {
      stage_.groups.push_back(on_each(order_.joins, &Resizing::redact_again));
    }
    add_sizes();
    stage_.groups.push_back(alone(settled("settle")));
    // What its service makes of the size shows itself once it runs, and with the first of them no
    // two leaders are possible yet.
    for (const auto* node : order_.joins) {
      stage_.groups.push_back(alone(start(*node)));
    }
    stage_.groups.push_back(on_each(order_.joins, &Resizing::follow));
    stage_.groups.push_back(alone(commit()));
    const auto& backup = order_.restore()->generation;
    for (const auto* node : order_.joins) {
      plan_.forecast.push_back({.node = node->name,
                                .row = fmt::format("it is given {} of backup {}, up to {}",
                                                   human_bytes(backup.restored_bytes), backup.id,
                                                   with_separators(backup.end_position))});
    }
  }

  void shrink() {
    bool first = true;
    for (const auto* node : order_.leaves) {
      if (!order_.is_gone(*node)) {
        stage_.groups.push_back(alone(leave(*node, first)));
        first = false;
      }
    }
    stage_.groups.push_back(alone(settled("settle-before", first)));
    add_sizes();
    stage_.groups.push_back(alone(settled("settle")));
    stage_.groups.push_back(alone(commit()));
  }

  void add_sizes() {
    for (std::size_t i = 0; i < order_.stays.size(); ++i) {
      stage_.groups.push_back(alone(size(i)));
    }
  }

  Group on_each(const Voters& nodes, Step (Resizing::*make)(const NodeSnapshot&) const) const {
    Group group;
    group.reserve(nodes.size());
    for (const auto* node : nodes) {
      group.push_back((this->*make)(*node));
    }
    return group;
  }

  static Json::Array names_of(const Voters& nodes) {
    Json::Array out;
    for (const auto* node : nodes) {
      out.emplace_back(node->name);
    }
    return out;
  }
  [[nodiscard]] const Voters& absent() const {
    return order_.grows() ? order_.joins : order_.leaves;
  }
  [[nodiscard]] std::string all_stay() const {
    std::vector<std::string_view> names;
    names.reserve(order_.stays.size());
    for (const auto* node : order_.stays) {
      names.emplace_back(node->name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
  }

  Step step_of(std::string_view prefix, std::string_view kind, const std::string& node) const {
    Step step;
    step.id = node.empty() ? std::string(prefix) : joined(prefix, "-", node);
    step.kind = std::string(kind);
    step.node = node;
    step.attempts = kAttemptsOfResize;
    step.expected = expected_of_restore(
        kind, order_.restore() == nullptr ? 0 : order_.restore()->generation.restored_bytes,
        order_.wanted.bytes_per_second);
    return step;
  }

  void add_service_deadline(Step& step) const {
    if (order_.policy.limits.service_deadline_ms != RunLimits{}.service_deadline_ms) {
      step.parameters.insert_or_assign("serviceDeadlineMs",
                                       order_.policy.limits.service_deadline_ms);
    }
  }

  Step prepare(const NodeSnapshot& node) const {
    const auto& backup = order_.restore()->generation;
    auto step = step_of("prepare", restore_steps::kPrepare, node.name);
    step.parameters = {{"generation", backup.id},
                       {"nodes", Json::Array{Json(node.name)}},
                       {"repository", order_.wanted.repository},
                       {"repositoryId", order_.restore()->find(node.name)->repository_id},
                       {"restoredBytes", backup.restored_bytes},
                       {"scope", "node"}};
    step.gates = order_.gates();
    step.act = joined("look for backup ", backup.id, " and for room once more");
    step.observe = joined("the agent of ", node.name, " finds both");
    step.reason = "nothing is begun with a backup that cannot be read";
    return step;
  }

  Step stop_new(const NodeSnapshot& node) const {
    auto step = step_of("stop", restore_steps::kStop, node.name);
    step.parameters = {{"scope", "node"}, {"staysStopped", true}};
    add_service_deadline(step);
    step.act = joined("see that the server of ", node.name, " is stopped, and keep it so");
    step.observe = "its agent sees that no process has its files open";
    step.undo = "nothing: it was stopped before, and stays so";
    step.reason = "no other voter may run while one of the cluster counts to fewer";
    return step;
  }

  Step restore(const NodeSnapshot& node) const {
    const auto& backup = order_.restore()->generation;
    auto step = step_of("restore", restore_steps::kRestore, node.name);
    step.parameters = {{"bytesPerSecond", order_.wanted.bytes_per_second},
                       {"generation", backup.id},
                       {"otherNode", true},
                       {"repository", order_.wanted.repository},
                       {"repositoryId", order_.restore()->find(node.name)->repository_id},
                       {"scope", "node"},
                       {"threads", order_.wanted.threads}};
    step.act = joined("restore backup ", backup.id, " onto ", node.name);
    step.observe = "its agent has compared every file with the backup";
    step.undo = joined("revert ", node.name, " to the files it had");
    step.reason = "what the backup has need not be copied from a node of the cluster";
    return step;
  }

  Step redact_again(const NodeSnapshot& node) const {
    return redact_again_step(node.name, "node", order_.restore()->redactions);
  }

  Step leave(const NodeSnapshot& node, bool first) const {
    auto step = step_of("stop", resize_steps::kLeave, node.name);
    Json::Array sizes;
    for (const auto* each : order_.stays) {
      sizes.emplace_back(joined("size-", each->name));
    }
    step.parameters = {{"resignFirst", true}, {"scope", "node"}, {"sizes", std::move(sizes)}};
    add_service_deadline(step);
    step.gates =
        first ? order_.gates() : std::vector<Gate>{{"cluster-identity", 0}, {"one-leader", 0}};
    step.gates.push_back({"quorum-margin", 1});
    // It may be elected after the plan was made, also more than once.
    const bool leads = &node == order_.snapshot.leader();
    step.act = joined("let ", node.name, leads ? " resign" : " resign if it leads by then",
                      ", stop its server, and keep it so");
    step.cost = StepCost{leads, 0};
    step.observe = "its agent sees that no process has its files open";
    step.undo =
        joined("start the server of ", node.name, ", once no other one has the smaller size");
    step.reason = "it must not run beside voters of the smaller size";
    return step;
  }

  Step size(std::size_t index) const {
    const auto& node = *order_.stays[index];
    const auto* own = order_.facts_of(node);
    auto step = step_of("size", resize_steps::kSize, node.name);
    Json::Array add;
    Json::Array remove;
    // A list in a file that is understood has no seed in brackets (an IPv6 address).
    for (const auto* each : absent()) {
      const auto seed = seed_of(*each);
      if (own != nullptr && own->seeds > 0 && !seed.starts_with('[')) {
        (order_.grows() ? add : remove).emplace_back(seed);
      }
    }
    Json::Array later;
    for (auto i = index + 1; i < order_.stays.size(); ++i) {
      later.emplace_back(joined("size-", order_.stays[i]->name));
    }
    Json::Array starts;
    if (order_.grows()) {
      for (const auto* each : order_.joins) {
        starts.emplace_back(joined("start-", each->name));
      }
    }
    step.parameters = {{"absent", names_of(absent())},
                       {"addSeeds", std::move(add)},
                       {"file", own == nullptr ? std::string() : own->file},
                       {"from", order_.from},
                       {"later", std::move(later)},
                       {"nodes", names_of(order_.stays)},
                       {"removeSeeds", std::move(remove)},
                       {"starts", std::move(starts)},
                       {"to", std::int64_t{order_.wanted.to}}};
    add_service_deadline(step);
    add_heal_filter(step, order_.wanted.heal_existence_filter);
    if (order_.grows() && index == 0) {
      step.gates = order_.gates();  // all before it may have taken hours
    } else {
      step.gates = {{"cluster-identity", 0}};  // no voter that only the members see
    }
    const bool leads = &node == order_.snapshot.leader();
    step.act = fmt::format("{}stop the server of {}, set ClusterSize {} in its file, start it",
                           leads ? joined("let ", node.name, " resign; ") : std::string(),
                           node.name, order_.wanted.to);
    step.observe = fmt::format("it answers, and reports {}", order_.wanted.to);
    step.undo = joined("put the former file of ", node.name, " back, and restart its server");
    step.reason = leads ? "the leader comes last" : "one node after the other";
    step.expected = kRestart;
    step.cost = StepCost{leads, 0};
    return step;
  }

  Step settled(std::string_view id, bool gated = false) const {
    auto step = step_of(id, resize_steps::kSettled, "");
    step.parameters = {{"absent", names_of(absent())},
                       {"holdMs", order_.policy.limits.leader_hold_ms},
                       {"nodes", names_of(order_.stays)}};
    step.gates = gated ? order_.gates() : std::vector<Gate>{{"cluster-identity", 0}};
    step.act = joined("look at leader, epochs and positions of ", all_stay());
    step.observe = "one of them leads, and all have what is committed";
    step.reason = order_.grows() ? "a new voter must not outvote one that has it"
                                 : "those that leave may have confirmed it";
    return step;
  }

  Step start(const NodeSnapshot& node) const {
    auto step = step_of("start", resize_steps::kStart, node.name);
    step.parameters = {{"nodes", names_of(order_.stays)},
                       {"replaces", ""},
                       {"role", "voter"},
                       {"size", std::int64_t{order_.wanted.to}}};
    step.act = joined("start the server of ", node.name,
                      "; at its first start it cuts its log, ends, and is started again");
    step.observe = joined("it answers, in the version of the others, and reports size ",
                          std::to_string(order_.wanted.to));
    step.undo = joined("stop the server of ", node.name,
                       ", and see that the others have all that is committed");
    step.reason = "it takes what it lacks from the leader";
    step.attempts = kStartAttemptsOfVoter;
    return step;
  }

  Step follow(const NodeSnapshot& node) const {
    auto step = step_of("follow", resize_steps::kFollow, node.name);
    step.parameters = {{"endPosition", order_.restore()->generation.end_position},
                       {"lagLimitBytes", order_.policy.gates.lag_limit_bytes},
                       {"nodes", Json::Array{Json(node.name)}},
                       {"scope", "node"}};
    step.act = joined("look at the state and the position of ", node.name);
    step.observe = "it follows the leader, and has caught up";
    step.reason = "a node counts only once it follows";
    return step;
  }

  Step commit() const {
    auto step = step_of("register", resize_steps::kCommit, "");
    Json::Array nodes;
    for (const auto* node : order_.joins) {
      nodes.push_back(
          Json::Object{{"agent", node->agent_url}, {"name", node->name}, {"url", node->url}});
    }
    step.parameters = {{"absent", order_.grows() ? Json::Array() : names_of(order_.leaves)},
                       {"joined", std::move(nodes)},
                       {"left", names_of(order_.leaves)},
                       {"nodes", names_of(order_.stays)},
                       {"to", std::int64_t{order_.wanted.to}}};
    Json::Array gone;
    for (const auto* node : order_.leaves) {
      if (order_.is_gone(*node)) {
        gone.emplace_back(node->name);
      }
    }
    if (!gone.empty()) {
      step.parameters.insert_or_assign("replaces", std::move(gone));
    }
    step.act = fmt::format("register {} voters", order_.wanted.to);
    step.observe = order_.grows() ? "the new ones are followers" : "those that left are stopped";
    step.reason = "from here on nothing is undone";
    return step;
  }

  const ResizeOrder& order_;
  Stage stage_;
  Plan plan_;
};

}  // namespace

std::expected<Plan, std::vector<Refusal>> plan_resize(const ClusterSnapshot& snapshot,
                                                      const Policy& policy,
                                                      const History& /*history*/) {
  std::vector<Refusal> refusals;
  auto found = facts_of_preflight(snapshot, parse_resize_facts, refusals);
  const ResizeOrder order(snapshot, policy, std::move(found));
  auto others = resize_refusals(order);
  refusals.insert(refusals.end(), std::make_move_iterator(others.begin()),
                  std::make_move_iterator(others.end()));
  if (!refusals.empty()) {
    return std::unexpected(std::move(refusals));
  }
  return Resizing(order).build();
}

std::int64_t time_at_resize_ms(const Policy& /*policy*/, std::span<const PastDuration> durations) {
  std::int64_t out = 0;
  for (const auto& past : durations) {
    if (past.kind == restore_steps::kRestore || past.kind == resize_steps::kSize) {
      out += past.duration_ms;
    }
  }
  return out;
}

}  // namespace verger::planner::detail
