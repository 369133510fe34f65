#include "controller/executor/detail/run_context.h"

#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/own_queries.h"
#include "controller/executor/detail/node_watch.h"
#include "controller/executor/detail/waker.h"
#include "controller/executor/events.h"
#include "controller/executor/joining.h"
#include "engine/base/assert.h"
#include "engine/base/failpoint.h"
#include "engine/base/mutation.h"

namespace verger::controller::detail {

using nlohmann::json;

json parsed(const std::string& text) {
  if (text == "{}") {
    return json::object();
  }
  auto value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json::object() : value;
}

namespace {

/// What a stage has left, at least, when a controller comes to it after a restart.
constexpr std::chrono::milliseconds kLeastAfterRestart{60'000};

net::awaitable<void> woken(std::shared_ptr<Waker> waker) {
  co_await waker->channel.async_receive(net::as_tuple(net::use_awaitable));
}

}  // namespace

void RunContext::check() const {
  if (core_->stopping) {
    throw Stopped{};
  }
  if (run_->in_trouble) {  // of a step beside this one
    throw JournalTrouble{{Errc::kUnavailable, "the journal failed for another step"}};
  }
}

void RunContext::record_all(std::vector<RunEvent> new_events) {
  check();
  auto recorded = core_->record(*run_, std::move(new_events));
  if (!recorded) {
    check();
    run_->in_trouble = true;
    run_->wake();
    throw JournalTrouble{recorded.error()};
  }
}

void RunContext::record(std::string_view type, json data) {
  std::vector<RunEvent> one;
  one.push_back({std::string(type), std::move(data)});
  record_all(std::move(one));
}

void RunContext::failpoint([[maybe_unused]] const planner::Step& step,
                           [[maybe_unused]] std::string_view where) const {
  VERGER_FAILPOINT(fmt::format("controller.{}.{}", step.kind, where));
}

net::awaitable<bool> RunContext::sleep_for(std::chrono::milliseconds duration) {
  check();
  using net::experimental::awaitable_operators::operator||;
  const auto waker = std::make_shared<Waker>(co_await net::this_coro::executor);
  std::erase_if(run_->wakers, [](const auto& weak) { return weak.expired(); });
  run_->wakers.push_back(waker);
  const auto first = co_await (core_->parts.network.timers.sleep_for(duration) || woken(waker));
  check();
  co_return first.index() == 0;
}

ClusterConfig RunContext::cluster() const {
  auto config = core_->parts.registry.find(run_->state.cluster);
  if (config) {
    return with_joining(*std::move(config), run_->state.plan->policy);
  }
  // Removed under a run: the nodes of the plan are still the ones to look at.
  ClusterConfig planned;
  planned.name = run_->state.cluster;
  for (const auto& node : run_->state.plan->basis.nodes) {
    planned.nodes.push_back({node.name, node.url, node.agent_url});
  }
  return planned;
}

net::awaitable<planner::ClusterSnapshot> RunContext::look(const planner::Step& step) {
  check();
  if (kind_of(step).restores(step)) {
    co_return co_await watch_alone(step, core_->parts.network.request_deadline);
  }
  const auto config = cluster();
  auto snapshot = co_await core_->observer.take(config, Depth::kThorough);
  check();
  const auto& queries = run_->state.plan->policy.gates.queries;
  if (!queries.empty() &&
      std::ranges::find(step.gates, "queries", &planner::Gate::name) != step.gates.end()) {
    constexpr std::chrono::minutes kRemembered{1};
    snapshot.queries = co_await answer_queries(
        core_->parts.network, core_->own_queries,
        std::make_shared<Peers>(core_->parts.network, config), queries, kRemembered);
    check();
  }
  complete(snapshot, config);
  co_return snapshot;
}

net::awaitable<planner::ClusterSnapshot> RunContext::watch(const planner::Step& step) {
  check();
  const auto config = cluster();
  if (kind_of(step).restores(step)) {
    co_return co_await watch_alone(step, core_->parts.network.request_deadline);
  }
  const bool all = step.node.empty() || kind_of(step).looks_at_all_nodes();
  auto snapshot = co_await (all ? core_->observer.take(config, Depth::kQuick)
                                : core_->observer.watch(config, step.node));
  check();
  complete(snapshot, config);
  co_return snapshot;
}

net::awaitable<planner::ClusterSnapshot> RunContext::watch_alone(const planner::Step& step,
                                                                 std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds kOthers{1'000};
  if (step.node.empty()) {
    co_return co_await watch(step);
  }
  check();
  const auto config = cluster();
  auto snapshot = co_await core_->observer.watch(
      config, step.node, Observer::WatchLimits{.node = limit, .others = std::min(limit, kOthers)});
  check();
  snapshot.hours = hours(config);
  if (const auto* node = snapshot.find(step.node)) {
    track_node(*this, *node);
  }
  co_return snapshot;
}

std::optional<planner::Hours> RunContext::hours(const ClusterConfig& config) const {
  if (core_->parts.hours == nullptr || run_->state.ignores_hours || is_mutated("hours-ignored")) {
    return std::nullopt;
  }
  return core_->parts.hours->hours(config, run_->state.plan->policy.name,
                                   core_->parts.network.clock.now());
}

void RunContext::complete(planner::ClusterSnapshot& snapshot, const ClusterConfig& config) {
  snapshot.hours = hours(config);
  track_cluster(*this, snapshot);
}

Result<void> RunContext::begin_new_history(const std::map<std::string, std::string>& values) {
  const auto found = values.find(std::string(kNewHistoryValue));
  const auto config = core_->parts.registry.find(run_->state.cluster);
  if (found == values.end() || !config) {
    return {};
  }
  auto& registry = core_->parts.registry;
  auto database = parsed(found->second).value("database", std::string());
  if (!database.empty() && !config->identity.empty() && database != config->identity) {
    VERGER_RETURN_IF_ERROR(registry.set_identity(config->name, std::move(database)));
  }
  return config->epoch == EpochMark() ? Result<void>()
                                      : registry.set_epoch(config->name, EpochMark());
}

MemberChanges own_member_changes(const std::map<std::string, std::string>& values) {
  MemberChanges out;
  const auto found = values.find(std::string(kMembersValue));
  if (found == values.end()) {
    return out;
  }
  const auto changes = parsed(found->second);
  for (const auto& node : changes.value("joined", json::array())) {
    out.joined.insert(node.value("name", std::string()));
  }
  for (const auto& name : changes.value("left", json::array())) {
    out.left.insert(name.get<std::string>());
  }
  return out;
}

Result<void> RunContext::change_members(const std::map<std::string, std::string>& values) {
  const auto found = values.find(std::string(kMembersValue));
  if (found == values.end()) {
    return {};
  }
  const auto changes = parsed(found->second);
  std::vector<ClusterNode> joined;
  for (const auto& node : changes.value("joined", json::array())) {
    joined.push_back({.name = node.value("name", std::string()),
                      .url = node.value("url", std::string()),
                      .agent_url = node.value("agent_url", std::string())});
  }
  return core_->parts.registry.change_members(run_->state.cluster, joined,
                                              changes.value("left", std::vector<std::string>()));
}

void RunContext::alert_once(std::string_view step, std::string_view what, std::string reason) {
  auto key = fmt::format("{}/{}", step, what);
  if (run_->state.has_open_alert(key)) {
    return;
  }
  core_->parts.network.log.warning(reason, {{"run", run_->state.id}, {"step", std::string(step)}});
  record(events::kAlert, {{"step", step}, {"key", std::move(key)}, {"reason", std::move(reason)}});
}

void RunContext::clear_alert(const std::string& key) {
  if (run_->state.has_open_alert(key) && !has_ended(run_->state.status)) {
    record(events::kAlertCleared, {{"key", key}});
  }
}

bool RunContext::is_news(const std::string& what, const std::string& text) {
  auto& logged = run_->logged[what];
  return std::exchange(logged, text) != text;
}

StepKind& RunContext::kind_of(const planner::Step& step) const {
  auto* kind = core_->parts.kinds.find(step.kind);
  VERGER_ASSERT(kind != nullptr);  // drive() lets no run of unknown kinds begin a step
  return *kind;
}

StepContext RunContext::context_of(const planner::Step& step,
                                   planner::ClusterSnapshot snapshot) const {
  const auto& state = run_->state;
  StepContext context;
  context.cluster = with_joining(
      core_->parts.registry.find(state.cluster).value_or(ClusterConfig{}), state.plan->policy);
  context.step = step;
  context.state = state.steps.at(step.id);
  context.snapshot = std::move(snapshot);
  context.values = state.values;
  context.moves = state.moves;
  context.skipped_nodes = state.skipped_nodes;
  context.policy = state.plan->policy;
  context.run = state.id;
  context.epoch = core_->parts.epoch;
  context.peers = std::make_shared<Peers>(core_->parts.network, context.cluster);
  context.now = core_->parts.network.clock.now();
  context.in_state = in_state(step, context.now);
  context.in_reason = in_reason(step);
  context.state_of = [run = run_](std::string_view id) {
    const auto found = run->state.steps.find(std::string(id));
    return found == run->state.steps.end() ? std::nullopt : std::optional(found->second);
  };
  return context;
}

std::chrono::milliseconds RunContext::in_reason(const planner::Step& step) const {
  const auto& reason = run_->state.steps.at(step.id).reason;
  auto& began = run_->reason_began[step.id];
  if (began.reason != reason || began.at == Monotonic{}) {
    began = {.reason = reason, .at = monotonic()};
  }
  return std::chrono::duration_cast<std::chrono::milliseconds>(monotonic() - began.at);
}

std::vector<RunEvent> RunContext::new_values(
    const std::map<std::string, std::string>& values) const {
  std::vector<RunEvent> out;
  for (const auto& [name, value] : values) {
    const auto known = run_->state.values.find(name);
    if (known == run_->state.values.end() ||
        (known->second != value && parsed(known->second) != parsed(value))) {
      out.push_back({std::string(events::kRunValue), {{"name", name}, {"value", parsed(value)}}});
    }
  }
  return out;
}

void RunContext::back_off(const planner::Step& step, const std::string& reason) {
  constexpr std::chrono::milliseconds kLongest{30'000};
  constexpr int kFailuresToTell = 20;  // some ten minutes
  auto& each = run_->back_off[step.id];
  ++each.failures;
  each.until = monotonic() + std::min(poll() * (1 << std::min(each.failures, 10)), kLongest);
  if (each.failures == kFailuresToTell) {
    alert_once(step.id, "back-off",
               fmt::format("{} has failed {} times: {}; `verger run skip` leaves the node "
                           "out",
                           step.id, each.failures, reason));
  }
}

std::chrono::milliseconds RunContext::in_state(const planner::Step& step, Ticks now) const {
  const auto since = run_->state.steps.at(step.id).since;
  auto& began = run_->state_began[step.id];
  if (!began.since || began.since != since) {
    // After a restart only the wall clock knows how long it has been; set back, it knows nothing.
    const auto gone = since ? std::max<std::int64_t>(now.value() - since->value(), 0) : 0;
    began = {.since = since,
             .at = monotonic() - std::chrono::milliseconds(gone / kTicksPerMillisecond)};
  }
  return std::chrono::duration_cast<std::chrono::milliseconds>(monotonic() - began.at);
}

void RunContext::begin_deadline(const planner::Stage& stage, std::int64_t deadline_ms) {
  // After a restart only the wall clock knows how long the stage has been under way.
  const auto started = run_->state.stages.at(stage.id).started;
  if (run_->deadlines.contains(stage.id) && run_->deadline_of[stage.id] == started) {
    return;  // the run starts over in this process: the wall clock is not needed
  }
  run_->deadline_of[stage.id] = started;
  const auto now = core_->parts.network.clock.now();
  const auto gone =
      started ? std::max<std::int64_t>(now.value() - started->value(), 0) / kTicksPerMillisecond
              : 0;
  // The clock may have been set meanwhile, and what the stage waits for may have come about.
  const auto least = std::min<std::int64_t>(deadline_ms, kLeastAfterRestart.count());
  run_->deadlines[stage.id] =
      monotonic() + std::chrono::milliseconds(std::max(deadline_ms - gone, least));
}

net::awaitable<void> RunContext::pause_point() {
  const auto began = monotonic();
  bool paused = false;
  while (pausing()) {
    paused = true;
    if (run_->state.status == RunStatus::kPausing) {
      const bool acting = std::ranges::any_of(run_->state.steps, [](const auto& each) {
        return each.second.status == StepStatus::kActing ||
               each.second.status == StepStatus::kUnknown;
      });
      if (!acting) {
        record(events::kRunPaused, json::object());
      }
    }
    co_await sleep_for(poll());
  }
  if (paused) {
    run_->stop_deadlines(began, monotonic());
    run_->closed_since.clear();
  }
}

bool RunContext::past_deadline(const planner::Stage& stage, const planner::Step& step,
                               std::string_view doing) {
  const auto found = run_->deadlines.find(stage.id);
  if (found == run_->deadlines.end() || monotonic() < found->second) {
    return false;
  }
  auto reason = fmt::format("{} is {} past the deadline of its stage ({} ms)", step.id, doing,
                            stage.deadline_ms);
  if (stage.on_failure == planner::FailureRule::kStop) {
    // Stopping the run would undo nothing and help no node: it waits for a person, with an alert.
    alert_once(step.id, "deadline",
               fmt::format("{}; `verger run skip` leaves the node out", reason));
    return false;
  }
  alert_once(step.id, "deadline", std::move(reason));
  return true;
}

bool RunContext::closes_run(const planner::Stage& stage) const {
  return std::ranges::all_of(stage.groups, [this](const planner::Group& group) {
    return std::ranges::all_of(group, [this](const planner::Step& step) {
      const auto* kind = core_->parts.kinds.find(step.kind);
      return kind != nullptr && kind->closes_run();
    });
  });
}

bool RunContext::must_undo(const planner::Stage& stage) const {
  return stage.on_failure == planner::FailureRule::kUndoAll &&
         (run_->group_failed || cancelling() || left_out_of(run_->state, stage) != nullptr);
}

bool RunContext::has_begun(const planner::Stage& stage) const {
  return std::ranges::any_of(stage.groups, [this](const planner::Group& group) {
    return std::ranges::any_of(group, [this](const planner::Step& step) {
      const auto& state = run_->state.steps.at(step.id);
      if (state.attempt == state.attempts_before_rollback) {
        return false;
      }
      // Of a failed attempt there may be something to undo all the same. Where
      // nothing can be, rolling back leaves the step as it is: it would be done again and again.
      const bool never_acted =
          state.status == StepStatus::kPending || state.status == StepStatus::kWaiting;
      const auto* kind = core_->parts.kinds.find(step.kind);
      return !never_acted || (kind != nullptr && kind->can_undo());
    });
  });
}

}  // namespace verger::controller::detail
