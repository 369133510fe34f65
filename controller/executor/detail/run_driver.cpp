#include "controller/executor/detail/run_driver.h"

#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/executor/events.h"
#include "engine/base/assert.h"
#include "engine/base/failpoint.h"

namespace verger::controller::detail {

using nlohmann::json;

struct Waker {
  explicit Waker(const net::any_io_executor& executor) : channel(executor, 1) {}
  net::experimental::channel<void(boost::system::error_code)> channel;
};

namespace {

net::awaitable<void> woken(std::shared_ptr<Waker> waker) {
  co_await waker->channel.async_receive(net::as_tuple(net::use_awaitable));
}

bool has_ended_step(StepStatus status) {
  return status == StepStatus::kDone || status == StepStatus::kFailed ||
         status == StepStatus::kSkipped || status == StepStatus::kUndone;
}

}  // namespace

void Run::wake() {
  for (const auto& weak : std::exchange(wakers, {})) {
    if (const auto waker = weak.lock()) {
      waker->channel.try_send(boost::system::error_code{});
    }
  }
}

Result<void> Core::record(Run& run, std::vector<NewEvent> new_events) {
  auto appended = run.writer.append(new_events);
  if (!appended) {
    if (appended.error().code == Errc::kRefused) {
      stopping = true;
      parts.network.log.error("another controller has taken over; nothing is done any more",
                              {{"epoch", std::to_string(parts.epoch.value())}});
    }
    return appended.error();
  }
  auto revision = run.writer.revision().value() - static_cast<std::int64_t>(new_events.size());
  for (auto& event : new_events) {
    JournalEvent written;
    written.stream = run.writer.stream();
    written.revision = Revision(++revision);
    written.type = std::move(event.type);
    written.data = std::move(event.data);
    written.at = parts.network.clock.now();
    written.epoch = parts.epoch;
    const auto applied = apply(run.state, written);
    VERGER_ASSERT(applied.has_value());
  }
  return {};
}

Result<void> Core::reload(Run& run) {
  VERGER_TRY(const auto events, parts.journal.read(run.writer.stream()));
  RunState state;
  for (const auto& event : events) {
    VERGER_CHECK(apply(state, event));
  }
  if (!state.plan) {
    return Error{Errc::kCorruption, fmt::format("{}: it never started", run.writer.stream())};
  }
  run.writer = StreamWriter(parts.journal, run.writer.stream(), parts.epoch, state.revision);
  run.state = std::move(state);
  run.group_failed = false;
  run.in_trouble = false;
  return {};
}

net::awaitable<void> drive_run(std::shared_ptr<Core> core, std::shared_ptr<Run> run) {
  auto& log = core->parts.network.log;
  while (!core->stopping) {
    std::string trouble;
    try {
      co_await std::make_shared<RunDriver>(core, run)->drive();
      co_return;
    } catch (const Stopped&) {
      co_return;
    } catch (const JournalTrouble& problem) {
      trouble = problem.error.message;
    } catch (const boost::system::system_error& error) {
      if (error.code() == net::error::operation_aborted) {
        co_return;
      }
      trouble = error.what();
    } catch (const std::exception& error) {
      trouble = error.what();
    }
    // As after a restart: what the journal holds is what happened, the rest is looked for.
    log.error("the run starts over from the journal",
              {{"run", run->state.id}, {"reason", trouble}});
    for (bool reloaded = false; !reloaded && !core->stopping;) {
      co_await core->parts.network.timers.sleep_for(core->parts.options.poll_interval);
      if (core->stopping) {
        co_return;
      }
      const auto result = core->reload(*run);
      reloaded = result.has_value();
      if (!reloaded) {
        log.error("the journal cannot be read", {{"reason", result.error().message}});
      }
    }
  }
}

void RunDriver::check() const {
  if (core_->stopping) {
    throw Stopped{};
  }
  if (run_->in_trouble) {  // of a step beside this one
    throw JournalTrouble{{Errc::kUnavailable, "the journal failed for another step"}};
  }
}

void RunDriver::record_all(std::vector<NewEvent> new_events) {
  check();
  auto recorded = core_->record(*run_, std::move(new_events));
  if (!recorded) {
    check();
    run_->in_trouble = true;
    run_->wake();
    throw JournalTrouble{recorded.error()};
  }
}

void RunDriver::record(std::string_view type, const json& data) {
  record_all({NewEvent{std::string(type), data.dump()}});
}

void RunDriver::failpoint([[maybe_unused]] const planner::Step& step,
                          [[maybe_unused]] std::string_view where) const {
  VERGER_FAILPOINT(fmt::format("controller.{}.{}", step.kind, where));
}

net::awaitable<void> RunDriver::nap(std::chrono::milliseconds duration) {
  check();
  using namespace net::experimental::awaitable_operators;
  const auto waker = std::make_shared<Waker>(co_await net::this_coro::executor);
  std::erase_if(run_->wakers, [](const auto& weak) { return weak.expired(); });
  run_->wakers.push_back(waker);
  co_await (core_->parts.network.timers.sleep_for(duration) || woken(waker));
  check();
}

net::awaitable<planner::ClusterSnapshot> RunDriver::look() {
  check();
  auto config = core_->parts.registry.find(run_->state.cluster);
  if (!config) {
    // Removed under a run: the nodes of the plan are still the ones to look at.
    config = ClusterConfig{};
    config->name = run_->state.cluster;
    for (const auto& node : run_->state.plan->basis.nodes) {
      config->nodes.push_back({node.name, node.url, node.agent_url});
    }
  }
  auto snapshot = co_await core_->observer.take(*config);
  check();
  if (core_->parts.hours != nullptr) {
    snapshot.hours = core_->parts.hours->hours(*config, run_->state.plan->policy.name,
                                               core_->parts.network.clock.now());
  }
  track_leader(snapshot);
  co_return snapshot;
}

void RunDriver::track_leader(const planner::ClusterSnapshot& snapshot) {
  const auto* leader = snapshot.leader();
  auto& state = run_->state;
  if (leader == nullptr || snapshot.leader_stable_ms < state.plan->policy.scavenge.leader_hold_ms ||
      leader->name == state.leader || has_ended(state.status)) {
    return;
  }
  if (state.leader.empty()) {
    record(events::kLeaderSeen, {{"node", leader->name}});
    return;
  }
  // Planned is a move away from a node that a step of ours asked to give up the leadership.
  bool planned = false;
  for (const auto& stage : state.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        const auto& each = state.steps.at(step.id);
        planned = planned ||
                  (step.cost.leader_move && step.node == state.leader && !each.operation.empty() &&
                   each.attempt > 0 && each.status != StepStatus::kDone);
      }
    }
  }
  record(events::kLeaderMoved,
         {{"from", state.leader}, {"to", leader->name}, {"planned", planned}});
}

void RunDriver::alert_once(std::string_view step, std::string_view what, std::string reason) {
  auto key = fmt::format("{}/{}", step, what);
  if (std::ranges::find(run_->alerted, key) != run_->alerted.end()) {
    return;
  }
  run_->alerted.push_back(std::move(key));
  core_->parts.network.log.warning(reason, {{"run", run_->state.id}, {"step", std::string(step)}});
  record(events::kAlert, {{"step", step}, {"reason", std::move(reason)}});
}

StepKind& RunDriver::kind_of(const planner::Step& step) const {
  auto* kind = core_->parts.kinds.find(step.kind);
  VERGER_ASSERT(kind != nullptr);  // drive() lets no run of unknown kinds begin a step
  return *kind;
}

StepContext RunDriver::context_of(const planner::Step& step,
                                  planner::ClusterSnapshot snapshot) const {
  const auto& state = run_->state;
  StepContext context;
  context.cluster = core_->parts.registry.find(state.cluster).value_or(ClusterConfig{});
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
  return context;
}

std::chrono::milliseconds RunDriver::in_state(const planner::Step& step, Ticks now) const {
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

void RunDriver::begin_deadline(const planner::Stage& stage, std::int64_t deadline_ms) {
  // After a restart only the wall clock knows how long the stage has been under way.
  const auto started = run_->state.stages.at(stage.id).started;
  const auto now = core_->parts.network.clock.now();
  const auto gone =
      started ? std::max<std::int64_t>(now.value() - started->value(), 0) / kTicksPerMillisecond
              : 0;
  run_->deadlines[stage.id] =
      monotonic() + std::chrono::milliseconds(std::max<std::int64_t>(deadline_ms - gone, 0));
}

const planner::Step* RunDriver::unknown_step() const {
  for (const auto& stage : run_->state.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        if (core_->parts.kinds.find(step.kind) == nullptr &&
            !has_ended_step(run_->state.steps.at(step.id).status)) {
          return &step;
        }
      }
    }
  }
  return nullptr;
}

net::awaitable<void> RunDriver::drive() {
  if (const auto* step = unknown_step(); step != nullptr && !has_ended(run_->state.status)) {
    // Of a newer controller. What is under way is brought to a safe end, nothing else is begun.
    if (!cancelling()) {
      record(events::kRunCancelling,
             {{"by", "controller"},
              {"reason", fmt::format("step {}: this controller does not know the kind \"{}\"; make "
                                     "a new plan, or use the controller that made this one",
                                     step->id, step->kind)}});
    }
  }
  for (;;) {
    check();
    auto& state = run_->state;
    if (has_ended(state.status)) {
      co_return;
    }
    if (cancelling()) {
      co_await finish_cancelled();
      co_return;
    }
    if (state.order.empty()) {
      const bool skipped = !state.skipped_nodes.empty();
      record(events::kRunEnded,
             {{"state", "done"},
              {"reason", skipped ? fmt::format("without {}", fmt::join(state.skipped_nodes, ", "))
                                 : std::string()}});
      co_return;
    }
    const auto id = state.order.front();
    const auto& stages = state.plan->stages;
    co_await drive_stage(*std::ranges::find(stages, id, &planner::Stage::id));
  }
}

/// True when the run may go on with the next stage; false: look at the run's state again.
net::awaitable<bool> RunDriver::drive_stage(const planner::Stage& stage) {
  auto status = run_->state.stages.at(stage.id).status;
  if (status == StageStatus::kUndoing) {
    if (run_->state.stages.at(stage.id).rolling_back) {
      co_await roll_back(stage, "pause");
    } else {
      co_await fail_stage(stage, "");
    }
    co_return false;
  }
  if (status == StageStatus::kPending) {
    co_await pause_point();
    if (cancelling()) {
      co_return false;
    }
    record(events::kStageStarted, {{"stage", stage.id}});
  }
  begin_deadline(stage, stage.deadline_ms);
  for (const auto& group : stage.groups) {
    run_->group_failed = false;
    std::vector<net::awaitable<StepEnd>> work;
    std::vector<const planner::Step*> failed;
    for (const auto& step : group) {
      const auto step_status = state_of(step).status;
      if (step_status == StepStatus::kFailed) {
        failed.push_back(&step);
        run_->group_failed = true;
      } else if (!has_ended_step(step_status)) {
        work.push_back(drive_step(shared_from_this(), &stage, &step));
      }
    }
    const auto ends = co_await gather(std::move(work));
    check();
    if (std::ranges::find(ends, StepEnd::kPutOff) != ends.end()) {
      record(events::kStagePutOff, {{"stage", stage.id}, {"reason", "its node leads the cluster"}});
      co_return false;
    }
    for (const auto& step : group) {
      if (state_of(step).status == StepStatus::kFailed &&
          std::ranges::find(failed, &step) == failed.end()) {
        failed.push_back(&step);
      }
    }
    if (!failed.empty()) {
      co_await fail_stage(
          stage, fmt::format("{}: {}", failed.front()->id, state_of(*failed.front()).reason));
      co_return false;
    }
    if (cancelling()) {
      co_return false;
    }
    if (std::ranges::find(ends, StepEnd::kClosed) != ends.end()) {
      co_await roll_back(stage, "hours");
      co_return false;
    }
    if (std::ranges::find(ends, StepEnd::kLeft) != ends.end()) {
      if (pausing()) {
        co_await roll_back(stage, "pause");
      }
      co_return false;
    }
  }
  const bool skipped = std::ranges::any_of(stage.groups, [this](const auto& group) {
    return std::ranges::any_of(
        group, [this](const auto& step) { return state_of(step).status == StepStatus::kSkipped; });
  });
  if (skipped && stage.on_failure == planner::FailureRule::kUndoAll) {
    // Half of such a stage must not stay, such as a lowered priority without the resignation.
    co_await undo_stage(stage, "failure");
    record(events::kStageEnded, {{"stage", stage.id}, {"state", "undone"}});
    co_return true;
  }
  record(events::kStageEnded, {{"stage", stage.id}, {"state", "done"}});
  co_return true;
}

net::awaitable<void> RunDriver::fail_stage(const planner::Stage& stage, std::string reason) {
  switch (stage.on_failure) {
    case planner::FailureRule::kStop:
      record_all(
          {{std::string(events::kStageEnded),
            json{{"stage", stage.id}, {"state", "failed"}}.dump()},
           {std::string(events::kRunEnded), json{{"state", "failed"}, {"reason", reason}}.dump()}});
      co_return;
    case planner::FailureRule::kSkipNode: {
      std::set<std::string> nodes;
      for (const auto& group : stage.groups) {
        for (const auto& step : group) {
          if (state_of(step).status == StepStatus::kFailed && !step.node.empty()) {
            nodes.insert(step.node);
          }
        }
      }
      for (const auto& node : nodes) {
        record(events::kNodeSkipped, {{"node", node}, {"by", "plan"}, {"reason", reason}});
      }
      for (const auto& group : stage.groups) {
        for (const auto& step : group) {
          if (!has_ended_step(state_of(step).status)) {
            record(events::kStepSkipped, {{"step", step.id}, {"reason", reason}});
          }
        }
      }
      record(events::kStageEnded, {{"stage", stage.id}, {"state", "failed"}});
      co_return;
    }
    case planner::FailureRule::kUndoAll:
      co_await undo_stage(stage, "failure");
      if (reason.empty()) {
        // After a restart in the middle of the undo: the failed step still knows why.
        for (const auto& [id, step] : run_->state.steps) {
          if (step.status == StepStatus::kFailed) {
            reason = fmt::format("{}: {}", id, step.reason);
          }
        }
      }
      // A cancelled run is ended by its own path.
      if (cancelling()) {
        record(events::kStageEnded, {{"stage", stage.id}, {"state", "undone"}});
        co_return;
      }
      record_all(
          {{std::string(events::kStageEnded),
            json{{"stage", stage.id}, {"state", "undone"}}.dump()},
           {std::string(events::kRunEnded), json{{"state", "failed"}, {"reason", reason}}.dump()}});
      co_return;
  }
}

bool RunDriver::has_begun(const planner::Stage& stage) const {
  return std::ranges::any_of(stage.groups, [this](const planner::Group& group) {
    return std::ranges::any_of(group, [this](const planner::Step& step) {
      const auto& state = run_->state.steps.at(step.id);
      return state.attempt > state.forgiven;
    });
  });
}

net::awaitable<void> RunDriver::roll_back(const planner::Stage& stage, std::string_view why) {
  co_await undo_stage(stage, why);
  record(events::kStageRolledBack, {{"stage", stage.id}, {"reason", why}});
}

net::awaitable<void> RunDriver::undo_stage(const planner::Stage& stage, std::string_view why) {
  if (run_->state.stages.at(stage.id).status != StageStatus::kUndoing) {
    record(events::kUndoStarted, {{"stage", stage.id}, {"why", why}});
  }
  begin_deadline(stage, stage.undo_deadline_ms);
  for (auto group = stage.groups.rbegin(); group != stage.groups.rend(); ++group) {
    for (auto step = group->rbegin(); step != group->rend(); ++step) {
      const auto& state = state_of(*step);
      const auto* kind = core_->parts.kinds.find(step->kind);
      if (kind == nullptr && state.attempt > 0) {
        alert_once(step->id, "undo",
                   fmt::format("{} cannot be undone: this controller does not know the kind \"{}\"",
                               step->id, step->kind));
        continue;
      }
      // An act whose outcome is not known is taken back like one that is.
      if (state.attempt > 0 && state.status != StepStatus::kUndone && kind->can_undo()) {
        co_await undo_step(stage, *step);
      }
    }
  }
}

net::awaitable<void> RunDriver::undo_step(const planner::Stage& stage, const planner::Step& step) {
  auto& kind = kind_of(step);
  std::string problem = "the node was not seen";
  bool asked = state_of(step).undoing;
  for (;;) {
    if (monotonic() >= run_->deadlines.at(stage.id)) {
      auto reason = fmt::format("{} could not be undone in time: {}", step.id, problem);
      alert_once(step.id, "undo", reason);
      record(events::kUndoFailed, {{"step", step.id}, {"reason", std::move(reason)}});
      co_return;
    }
    auto context = context_of(step, co_await look());
    if (asked) {
      const auto verdict = co_await kind.observe_undo(context);
      check();
      if (verdict.kind == Verdict::Kind::kDone) {
        record(events::kStepUndone, {{"step", step.id}});
        co_return;
      }
      problem = verdict.note;
      asked = verdict.kind != Verdict::Kind::kNotHappened;
    }
    if (!asked) {
      context.state.undoing = true;
      ++context.state.undo_attempt;
      const auto permitted =
          co_await permit_everywhere(context, core_->parts.options.permit_valid_for);
      if (permitted) {
        record(events::kUndoIntended, {{"step", step.id},
                                       {"operation", core_->parts.random.uuid().to_string()},
                                       {"attempt", context.state.undo_attempt}});
        context.state = state_of(step);
        const auto answer = co_await kind.undo(context);
        check();
        asked =
            answer.kind == ActAnswer::Kind::kAccepted || answer.kind == ActAnswer::Kind::kUnknown;
        problem = answer.note;
      } else {
        problem = permitted.error().message;
      }
    }
    co_await nap(poll());
  }
}

net::awaitable<void> RunDriver::finish_cancelled() {
  // What acts was asked to stop and has been seen to end before this is reached.
  bool gave_up = false;
  const auto& stages = run_->state.plan->stages;
  for (const auto& stage : stages) {
    const auto status = run_->state.stages.at(stage.id).status;
    if (status != StageStatus::kRunning && status != StageStatus::kUndoing) {
      continue;
    }
    begin_deadline(stage, stage.deadline_ms);
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        const auto step_status = state_of(step).status;
        if (step_status != StepStatus::kActing && step_status != StepStatus::kUnknown) {
          continue;
        }
        if (core_->parts.kinds.find(step.kind) == nullptr) {
          gave_up = true;
          record(events::kStepFailed,
                 {{"step", step.id},
                  {"code", "unknown-kind"},
                  {"reason", fmt::format("it was under way, and this controller does not know the "
                                         "kind \"{}\"; look at the node",
                                         step.kind)}});
        } else {
          co_await drive_step(shared_from_this(), &stage, &step);
        }
      }
    }
    if (stage.on_failure == planner::FailureRule::kUndoAll) {
      co_await undo_stage(stage, "failure");
    }
    record(events::kStageEnded, {{"stage", stage.id}, {"state", "undone"}});
  }
  const bool failed = unknown_step() != nullptr || gave_up;
  record(events::kRunEnded,
         {{"state", failed ? "failed" : "cancelled"}, {"reason", run_->state.reason}});
}

}  // namespace verger::controller::detail
