#include "planner/growth/plan_growth.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/quantities.h"
#include "planner/detail/preflight_facts.h"
#include "planner/detail/stages.h"
#include "planner/detail/text.h"
#include "planner/growth/growth_order.h"
#include "planner/growth/growth_steps.h"
#include "planner/restore/redact_again.h"
#include "planner/restore/restore_order.h"
#include "planner/restore/restore_steps.h"

namespace verger::planner::detail {
namespace {

/// A start that does not succeed is repeated by the agent; these are the requests.
constexpr std::int32_t kStartAttemptsOfNew = 10;
constexpr std::int32_t kAttemptsOfNew = 3;

/// The stage of a growth that nothing stands against.
class Growing {
 public:
  explicit Growing(const GrowthOrder& order)
      : order_(order),
        name_(order.joins->name),
        backup_(order.facts->generation),
        role_(to_string(order.wanted.role)) {}

  Plan build() {
    plan_.cluster = order_.snapshot.cluster;
    plan_.policy = order_.policy;
    Stage stage;
    stage.id = joined("join-", name_);
    stage.title = joined("add ", name_, ", or leave all as it is");
    stage.on_failure = FailureRule::kUndoAll;
    stage.atomic = true;
    stage.deadline_ms = order_.wanted.join_deadline_ms;
    stage.undo_deadline_ms =
        std::max(order_.policy.limits.undo_deadline_ms, order_.policy.limits.service_deadline_ms);
    stage.groups.push_back(alone(prepare()));
    if (order_.replaced != nullptr && order_.replaced->agent_answered) {
      stage.groups.push_back(alone(stop(order_.replaced->name,
                                        "it must not run beside the one "
                                        "that takes its place")));
    }
    stage.groups.push_back(
        alone(stop(name_,
                   "files of a running server cannot be replaced, nor may anything but "
                   "this run start it")));
    stage.groups.push_back(alone(restore()));
    if (order_.facts->redactions > 0) {
      stage.groups.push_back(alone(redact_again_step(name_, "node", order_.facts->redactions)));
    }
    stage.groups.push_back(alone(start()));
    stage.groups.push_back(alone(follow()));
    stage.groups.push_back(alone(add_to_registration()));
    plan_.stages.push_back(std::move(stage));
    plan_.forecast.push_back({.node = name_,
                              .row = fmt::format("it is given {} of backup {}, up to {}",
                                                 human_bytes(backup_.restored_bytes), backup_.id,
                                                 with_separators(backup_.end_position))});
    plan_.notes = growth_notes(order_);
    return std::move(plan_);
  }

 private:
  Step step_of(std::string_view prefix, std::string_view kind, const std::string& node) const {
    Step step;
    step.id = joined(prefix, "-", node);
    step.kind = std::string(kind);
    step.node = node;
    step.attempts = kAttemptsOfNew;
    step.expected =
        expected_of_restore(kind, backup_.restored_bytes, order_.wanted.bytes_per_second);
    return step;
  }

  Step prepare() const {
    auto step = step_of("prepare", restore_steps::kPrepare, name_);
    step.parameters = {{"generation", backup_.id},
                       {"nodes", Json::Array{Json(name_)}},
                       {"repository", order_.wanted.repository},
                       {"repositoryId", order_.own_facts()->repository_id},
                       {"restoredBytes", backup_.restored_bytes},
                       {"scope", "node"}};
    step.gates = order_.gates();
    step.act = joined("look for backup ", backup_.id, " and for room once more");
    step.observe = joined("the agent of ", name_, " finds both");
    step.reason = "nothing is begun with a backup that cannot be read";
    return step;
  }

  Step stop(const std::string& node, std::string reason) const {
    auto step = step_of("stop", restore_steps::kStop, node);
    step.parameters = {{"scope", "node"}, {"staysStopped", true}};
    if (order_.policy.limits.service_deadline_ms != RunLimits{}.service_deadline_ms) {
      step.parameters.insert_or_assign("serviceDeadlineMs",
                                       order_.policy.limits.service_deadline_ms);
    }
    step.act = joined("see that the server of ", node, " is stopped, and keep it so");
    step.observe = "its agent sees that no process has its files open";
    step.undo = "nothing: it was stopped before, and stays so";
    step.reason = std::move(reason);
    return step;
  }

  Step restore() const {
    auto step = step_of("restore", restore_steps::kRestore, name_);
    step.parameters = {{"bytesPerSecond", order_.wanted.bytes_per_second},
                       {"generation", backup_.id},
                       {"otherNode", true},
                       {"repository", order_.wanted.repository},
                       {"repositoryId", order_.own_facts()->repository_id},
                       {"scope", "node"},
                       {"threads", order_.wanted.threads}};
    step.act = joined("restore backup ", backup_.id, " onto ", name_);
    step.observe = "its agent has compared every file with the backup";
    step.undo = joined("revert ", name_, " to the files it had");
    step.reason = "what the backup has need not be copied from a node of the cluster";
    return step;
  }

  Step start() const {
    auto step = step_of("start", growth_steps::kStart, name_);
    step.parameters = {{"replaces", order_.wanted.replaces}, {"role", role_}};
    step.act = joined("start the server of ", name_,
                      "; at its first start it cuts its log, ends, and is started again");
    step.observe = "it answers, in the version of the others";
    step.undo = order_.votes() ? joined("stop the server of ", name_,
                                        ", and see that the others have all that is committed")
                               : joined("stop the server of ", name_);
    step.reason = "it takes what it lacks from the leader";
    step.attempts = kStartAttemptsOfNew;
    return step;
  }

  Step follow() const {
    auto step = step_of("follow", restore_steps::kCheck, name_);
    step.parameters = {{"endPosition", backup_.end_position},
                       {"lagLimitBytes", order_.policy.gates.lag_limit_bytes},
                       {"nodes", Json::Array{Json(name_)}},
                       {"scope", "node"}};
    step.act = joined("look at the state and the position of ", name_);
    step.observe = "it follows the leader, and has caught up";
    step.reason = "a node counts only once it follows";
    return step;
  }

  Step add_to_registration() const {
    auto step = step_of("register", growth_steps::kRegister, name_);
    step.parameters = {{"agent", order_.joins->agent_url},
                       {"replaces", order_.wanted.replaces},
                       {"role", role_},
                       {"url", order_.joins->url}};
    step.act = order_.replaced == nullptr
                   ? joined("register ", name_)
                   : joined("register ", name_, " in the place of ", order_.replaced->name);
    step.observe = joined("it is ", order_.votes() ? "a follower" : "a read-only replica");
    step.reason = "from here on it is a member like the others";
    return step;
  }

  const GrowthOrder& order_;
  std::string name_;
  const RestoreGeneration& backup_;
  std::string_view role_;
  Plan plan_;
};

}  // namespace

std::expected<Plan, std::vector<Refusal>> plan_growth(const ClusterSnapshot& snapshot,
                                                      const Policy& policy,
                                                      const History& /*history*/) {
  std::vector<Refusal> refusals;
  auto found = facts_of_preflight(snapshot, parse_restore_facts, refusals);
  const GrowthOrder order(snapshot, policy, std::move(found));
  auto others = growth_refusals(order);
  refusals.insert(refusals.end(), std::make_move_iterator(others.begin()),
                  std::make_move_iterator(others.end()));
  if (!refusals.empty()) {
    return std::unexpected(std::move(refusals));
  }
  return Growing(order).build();
}

std::int64_t time_at_growth_ms(const Policy& /*policy*/, std::span<const PastDuration> durations) {
  std::int64_t out = 0;
  for (const auto& past : durations) {
    if (past.kind == restore_steps::kRestore) {
      out += past.duration_ms;
    }
  }
  return out;
}

}  // namespace verger::planner::detail
