#include "controller/executor/detail/undo.h"

#include <fmt/format.h>
#include <map>

#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/executor/events.h"

namespace verger::controller::detail {

net::awaitable<void> Undo::undo(const planner::Stage& stage, std::string_view why) {
  if (run_->state().stages.at(stage.id).status != StageStatus::kUndoing) {
    run_->record(events::kUndoStarted, {{"stage", stage.id}, {"why", why}});
  }
  std::map<std::string, Steps> by_node;
  for (auto group = stage.groups.rbegin(); group != stage.groups.rend(); ++group) {
    for (auto step = group->rbegin(); step != group->rend(); ++step) {
      const auto& state = run_->state_of(*step);
      const auto* kind = run_->parts().kinds.find(step->kind);
      if (kind == nullptr && state.attempt > 0) {
        run_->alert_once(
            step->id, "undo",
            fmt::format("{} cannot be undone: this controller does not know the kind \"{}\"",
                        step->id, step->kind));
        continue;
      }
      // An act whose outcome is not known is undone like one that is.
      if (state.attempt > 0 && state.status != StepStatus::kUndone && kind->can_undo()) {
        by_node[step->node].push_back(&*step);
      }
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
  for (const auto* step : steps) {
    co_await self->undo_step(*stage, *step);
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

net::awaitable<void> Undo::undo_step(const planner::Stage& stage, const planner::Step& step) {
  auto& kind = run_->kind_of(step);
  std::string problem = "the node was not seen";
  bool asked = run_->state_of(step).undoing;
  // Of this step alone: what another one needed is not taken from it.
  const auto deadline = run_->monotonic() + std::chrono::milliseconds(stage.undo_deadline_ms);
  for (;;) {
    if (run_->monotonic() >= deadline) {
      auto reason = fmt::format("{} could not be undone in time: {}", step.id, problem);
      run_->alert_once(step.id, "undo", reason);
      // Giving up would only begin the stage anew, whose hours are still closed: it would be rolled
      // back again, deadline after deadline. The node may come back meanwhile.
      if (!waits_for_hours(stage, step)) {
        run_->record(events::kUndoFailed, {{"step", step.id}, {"reason", std::move(reason)}});
        co_return;
      }
    }
    if (const auto found = run_->live().back_off.find(step.id);
        !asked && found != run_->live().back_off.end() && run_->monotonic() < found->second.until) {
      co_await run_->sleep_for(run_->poll());
      continue;
    }
    auto context = run_->context_of(step, co_await run_->watch(step));
    if (asked) {
      const auto verdict = co_await kind.observe_undo(context);
      run_->check();
      if (verdict.kind == Verdict::Kind::kDone) {
        run_->record(events::kStepUndone, {{"step", step.id}});
        co_return;
      }
      const bool says_nothing = verdict.kind == Verdict::Kind::kRunning && verdict.reason.empty();
      problem = says_nothing ? "its undo is under way" : verdict.reason;
      asked = verdict.kind != Verdict::Kind::kNotHappened;
    }
    if (!asked) {
      context.state.undoing = true;
      ++context.state.undo_attempt;
      const auto permitted =
          co_await permits_.permit(context, run_->parts().options.permit_valid_for);
      if (permitted) {
        run_->record(events::kUndoIntended, {{"step", step.id},
                                             {"operation", run_->parts().random.uuid().to_string()},
                                             {"attempt", context.state.undo_attempt}});
        context.state = run_->state_of(step);
        const auto answer = co_await kind.undo(context);
        run_->check();
        asked =
            answer.kind == ActAnswer::Kind::kAccepted || answer.kind == ActAnswer::Kind::kUnknown;
        problem = answer.reason;
        if (!asked) {
          run_->back_off(step, problem);
        }
      } else {
        problem = permitted.error().message;
      }
    }
    co_await run_->sleep_for(run_->poll());
  }
}

}  // namespace verger::controller::detail
