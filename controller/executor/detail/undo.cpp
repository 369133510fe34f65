#include "controller/executor/detail/undo.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/executor/events.h"
#include "engine/base/mutation.h"

namespace verger::controller::detail {
namespace {

using std::chrono::milliseconds;

/// A look at the node, while there is time.
constexpr milliseconds kLongestLook{15'000};
constexpr milliseconds kShortestLook{1'000};
/// Between two requests, while there is time.
constexpr milliseconds kLongestPause{5'000};
/// And past the deadline, while the hours are closed.
constexpr milliseconds kLongestLatePause{60'000};
constexpr milliseconds kShortestPause{100};
/// What was requested just before the deadline is watched for so long: gossip carries a priority to
/// all nodes within that, and a server takes as long to answer once it is started.
constexpr milliseconds kLastRequest{15'000};
/// A step that cannot be undone gets so long to end before those before it are undone.
constexpr milliseconds kOthersFirst{30'000};
constexpr milliseconds kForever = std::chrono::hours(24 * 365);
/// However long no controller ran, each node gets this much.
constexpr milliseconds kAtLeast{60'000};

milliseconds look_limit(milliseconds left) {
  return left <= milliseconds(0) ? kLongestLook : std::clamp(left / 2, kShortestLook, kLongestLook);
}

/// Denser towards the deadline: a node that comes back just before it is seen.
milliseconds pause_after(int failures, milliseconds poll, milliseconds left) {
  const auto longest = std::max(poll, left <= milliseconds(0) ? kLongestLatePause : kLongestPause);
  const auto pause = std::min(poll * (1 << std::min(failures, 10)), longest);
  return left <= milliseconds(0)
             ? pause
             : std::min(pause, std::max(left / 4, std::min(poll, kShortestPause)));
}

/// Why nothing can be requested of the node now; empty: try. A request to a silent agent takes
/// until its own deadline: there must be time for it.
std::string out_of_reach(const StepContext& context, bool in_a_hurry) {
  const auto* node = context.node();
  if (context.step.node.empty()) {
    return {};
  }
  if (node == nullptr) {
    return "it is no longer registered";
  }
  if (node->agent_answered || (node->answered && !(node->has_agent() && in_a_hurry))) {
    return {};
  }
  return fmt::format("{}{}{}", node->problem,
                     node->problem.empty() || node->agent_problem.empty() ? "" : "; ",
                     node->agent_problem);
}

}  // namespace

net::awaitable<void> Undo::undo(const planner::Stage& stage, std::string_view why) {
  if (run_->state().stages.at(stage.id).status != StageStatus::kUndoing) {
    run_->record(events::kUndoStarted, {{"stage", stage.id}, {"why", why}});
  }
  std::map<std::string, Steps> by_node;
  for (auto group = stage.groups.rbegin(); group != stage.groups.rend(); ++group) {
    for (auto step = group->rbegin(); step != group->rend(); ++step) {
      const auto& state = run_->state_of(*step);
      // Ended before a restart of the controller, one way or the other.
      const bool undo_ended = state.undo_end || state.status == StepStatus::kUndone;
      if (state.attempt == 0 || undo_ended) {
        continue;
      }
      if (run_->parts().kinds.find(step->kind) == nullptr) {
        give_up(*step, fmt::format("this controller does not know the kind \"{}\"", step->kind),
                "");
        continue;
      }
      by_node[step->node].push_back(&*step);
    }
  }
  std::vector<net::awaitable<bool>> work;
  work.reserve(by_node.size());
  for (auto& [node, steps] : by_node) {
    work.push_back(undo_node(shared_from_this(), &stage, std::move(steps)));
  }
  co_await gather(std::move(work));
  run_->check();
}

net::awaitable<bool> Undo::undo_node(std::shared_ptr<Undo> self, const planner::Stage* stage,
                                     Steps steps) {
  auto& run = *self->run_;
  // What is requested of the node already, and not answered yet, has its own deadline.
  while (std::ranges::any_of(run.live().driven, [&](const auto& driven) {
    return driven.second == steps.front()->node;
  })) {
    co_await run.sleep_for(run.poll());
  }
  auto begins = run.state().stages.at(stage->id).started.value_or(Ticks());
  for (const auto* step : steps) {
    // What cannot be undone must not keep for long what can be, such as a resignation without end
    // the priority.
    const bool can_undo = run.kind_of(*step).can_undo();
    co_await self->steps_->settle(*stage, *step, can_undo ? kForever : kOthersFirst);
    const auto& state = run.state_of(*step);
    // Else it was seen not to have happened at all: the attempt was given up.
    if (state.attempt > 0 && can_undo) {
      co_await self->undo_step(*stage, *step, std::max(begins, state.since.value_or(begins)));
    }
    if (const auto& end = run.state_of(*step).undo_end) {
      begins = std::max(begins, end->at);
    }
  }
  for (const auto* step : steps) {
    if (!run.kind_of(*step).can_undo()) {
      co_await self->steps_->settle(*stage, *step, kForever);  // its stage has a deadline
    }
  }
  co_return true;
}

bool Undo::waits_for_hours(const planner::Stage& stage, const planner::Step& step) const {
  if (!run_->state().stages.at(stage.id).rolling_back || run_->cancelling() || run_->pausing() ||
      run_->is_skipped(step)) {
    return false;
  }
  const auto now = run_->hours(run_->cluster());
  return now && !now->open;
}

Monotonic Undo::deadline(const planner::Stage& stage, Ticks begins) const {
  const milliseconds whole(stage.undo_deadline_ms);
  const auto now = run_->parts().network.clock.now();
  const milliseconds gone(std::max<std::int64_t>(now.value() - begins.value(), 0) /
                          kTicksPerMillisecond);
  return run_->monotonic() + std::max(whole - gone, std::min(whole, kAtLeast));
}

void Undo::give_up(const planner::Step& step, std::string reason, std::string command) {
  auto text = fmt::format("{} could not be undone: {}", step.id, reason);
  if (!command.empty()) {
    text += fmt::format("; by hand: {}", command);
  } else if (!step.undo.empty()) {
    text += fmt::format("; by hand: {}", step.undo);
  }
  run_->alert_once(step.id, "undo", std::move(text));
  run_->record(events::kUndoFailed, {{"step", step.id},
                                     {"node", step.node},
                                     {"reason", std::move(reason)},
                                     {"command", std::move(command)}});
}

void Undo::warn_if_overdue(const planner::Step& step, const StepContext& context,
                           const std::string& problem) {
  const auto& kind = run_->kind_of(step);
  const auto overdue = kind.undo_overdue(context);
  if (overdue.empty()) {
    return;
  }
  const auto command = kind.undo_command(context);
  run_->alert_once(step.id, "undo-overdue",
                   fmt::format("{}, and {} is not undone: {}{}{}", overdue, step.id, problem,
                               command.empty() ? "" : "; by hand: ", command));
}

net::awaitable<Result<void>> Undo::request(const planner::Step& step, StepContext context) {
  if (!context.state.acted) {
    auto forwards = context;
    forwards.state.undoing = false;
    const auto shut = co_await permits_.permit_at_own_agent(std::move(forwards), milliseconds(0));
    if (!shut) {
      co_return shut.error();
    }
  }
  context.state.undoing = true;
  ++context.state.undo_attempt;
  const auto valid_for = run_->parts().options.permit_valid_for;
  const auto permitted = co_await (is_mutated("undo-needs-all-agents")
                                       ? permits_.permit(context, valid_for)
                                       : permits_.permit_at_own_agent(context, valid_for));
  if (!permitted) {
    co_return permitted.error();
  }
  run_->record(events::kUndoIntended, {{"step", step.id},
                                       {"operation", run_->parts().random.uuid().to_string()},
                                       {"attempt", context.state.undo_attempt}});
  context.state = run_->state_of(step);
  const auto answer = co_await run_->kind_of(step).undo(context);
  run_->check();
  if (answer.kind == ActAnswer::Kind::kAccepted || answer.kind == ActAnswer::Kind::kUnknown) {
    co_return Result<void>{};
  }
  co_return Error{Errc::kRefused, answer.reason};
}

net::awaitable<void> Undo::undo_step(const planner::Stage& stage, const planner::Step& step,
                                     Ticks begins) {
  auto& kind = run_->kind_of(step);
  const auto deadline = this->deadline(stage, begins);
  std::string problem = "the node was not seen";
  bool requested = run_->state_of(step).undoing;
  auto last_request = run_->monotonic();
  bool tried = false;
  for (int failures = 0;;) {
    auto left = std::chrono::duration_cast<milliseconds>(deadline - run_->monotonic());
    auto context = run_->context_of(step, co_await run_->watch_alone(step, look_limit(left)));
    if (auto why = kind.must_stay(context); !why.empty()) {
      give_up(step, std::move(why), kind.undo_command(context));
      co_return;
    }
    if (requested) {
      const auto verdict = co_await kind.observe_undo(context);
      run_->check();
      if (verdict.kind == Verdict::Kind::kDone) {
        run_->record(events::kStepUndone, {{"step", step.id}});
        co_return;
      }
      problem = verdict.reason.empty() ? "its undo is under way" : verdict.reason;
      requested =
          verdict.kind != Verdict::Kind::kNotHappened && verdict.kind != Verdict::Kind::kNotArrived;
    }
    left = std::chrono::duration_cast<milliseconds>(deadline - run_->monotonic());
    const bool late = left <= milliseconds(0);
    // Giving up would only begin the stage anew, whose hours are still closed: it would be rolled
    // back again, deadline after deadline. The node may come back meanwhile.
    const bool waits = late && waits_for_hours(stage, step);
    if (waits) {
      run_->alert_once(step.id, "undo",
                       fmt::format("{} could not be undone in time: {}", step.id, problem));
    } else if (late && !(requested && run_->monotonic() < last_request + kLastRequest)) {
      give_up(step, fmt::format("not in time: {}", problem), kind.undo_command(context));
      co_return;
    }
    if (tried) {
      warn_if_overdue(step, context, problem);
    }
    tried = true;
    if (!requested) {
      if (auto why = out_of_reach(context, left < kLongestLook); !why.empty()) {
        problem = std::move(why);
      } else if (const auto answer = co_await request(step, std::move(context)); answer) {
        requested = true;
        last_request = run_->monotonic();
      } else {
        problem = answer.error().message;
      }
    }
    failures = requested ? 0 : failures + 1;
    left = std::chrono::duration_cast<milliseconds>(deadline - run_->monotonic());
    co_await run_->sleep_for(pause_after(failures, run_->poll(), left));
  }
}

}  // namespace verger::controller::detail
