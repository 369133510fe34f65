#include "controller/executor/detail/run_driver.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "controller/executor/undo_report.h"

namespace verger::controller::detail {

const planner::Step* RunDriver::unknown_step() const {
  for (const auto& stage : run_->state().plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        if (run_->parts().kinds.find(step.kind) == nullptr &&
            !is_over(run_->state().steps.at(step.id).status)) {
          return &step;
        }
      }
    }
  }
  return nullptr;
}

net::awaitable<void> RunDriver::drive() {
  if (const auto* step = unknown_step(); step != nullptr && !has_ended(run_->state().status)) {
    // Of a newer controller. What is under way is brought to a safe end, nothing else is begun.
    if (!run_->cancelling()) {
      run_->record(
          events::kRunCancelling,
          {{"by", "controller"},
           {"reason", fmt::format("step {}: this controller does not know the kind \"{}\"; make "
                                  "a new plan, or use the controller that made this one",
                                  step->id, step->kind)}});
    }
  }
  for (;;) {
    run_->check();
    auto& state = run_->state();
    if (has_ended(state.status)) {
      co_return;
    }
    if (run_->cancelling()) {
      co_await finish_cancelled();
      co_return;
    }
    if (state.order.empty()) {
      end_done();
      co_return;
    }
    const auto id = state.order.front();
    const auto& stages = state.plan->stages;
    const auto& stage = *std::ranges::find(stages, id, &planner::Stage::id);
    if (auto failure = co_await stages_.drive(stage)) {
      co_await end_failed(stage, *std::move(failure));
    }
  }
}

std::string RunDriver::with_undo(std::string reason) const {
  const auto text = not_undone_text(run_->state());
  return text.empty() ? reason : reason.empty() ? text : fmt::format("{}; {}", reason, text);
}

void RunDriver::end_done() {
  auto status = RunStatus::kDone;
  std::vector<std::string> reasons;
  if (const auto& skipped = run_->state().skipped_nodes; !skipped.empty()) {
    reasons.push_back(fmt::format("without {}", fmt::join(skipped, ", ")));
  }
  std::vector<std::pair<std::string, std::string>> differing;  // steps, and what each saw
  for (const auto& [id, step] : run_->state().steps) {
    const auto& result = *step.result;
    const auto found = result.find(kDifferences);
    if (step.status != StepStatus::kDone || found == result.end() || !found->is_array() ||
        found->empty()) {
      continue;
    }
    differing.emplace_back(
        id, fmt::format("{}", fmt::join(found->get<std::vector<std::string>>(), "; ")));
  }
  for (auto& [id, text] : differing) {
    status = RunStatus::kDoneWithDifferences;
    run_->alert_once(id, "differences", text);
    reasons.push_back(std::move(text));
  }
  if (auto text = not_undone_text(run_->state()); !text.empty()) {
    reasons.push_back(std::move(text));
  }
  run_->record(events::kRunEnded, {{"state", to_string(status)},
                                   {"reason", fmt::format("{}", fmt::join(reasons, "; "))}});
}

net::awaitable<void> RunDriver::end_failed(const planner::Stage& stage, StageFailure failure) {
  if (!co_await close_run()) {
    co_return;
  }
  end_failed_now(stage, failure);
}

void RunDriver::end_failed_now(const planner::Stage& stage, const StageFailure& failure) {
  run_->record_all(
      {{std::string(events::kStageEnded), {{"stage", stage.id}, {"state", failure.state}}},
       {std::string(events::kRunEnded),
        {{"state", "failed"}, {"reason", with_undo(failure.reason)}}}});
}

net::awaitable<bool> RunDriver::close_run() {
  run_->closing = true;
  const auto plan = run_->state().plan;
  for (const auto& stage : plan->stages) {
    const auto status = run_->state().stages.at(stage.id).status;
    const bool open = status == StageStatus::kPending || status == StageStatus::kRunning ||
                      status == StageStatus::kUndoing;
    if (!open || !run_->closes_run(stage)) {
      continue;
    }
    const auto failure = co_await stages_.drive(stage);
    if (failure && !has_ended(run_->state().status)) {
      end_failed_now(stage, *failure);
    }
  }
  run_->closing = false;
  co_return !has_ended(run_->state().status);
}

net::awaitable<void> RunDriver::finish_cancelled() {
  // What acts was ordered to stop and has been seen to end before this is reached.
  bool all_known = true;
  for (const auto& stage : run_->state().plan->stages) {
    const auto status = run_->state().stages.at(stage.id).status;
    if ((status == StageStatus::kRunning || status == StageStatus::kUndoing) &&
        !run_->closes_run(stage)) {
      all_known = co_await stages_.cancel(stage) && all_known;
    }
  }
  if (!co_await close_run()) {
    co_return;
  }
  const bool failed = unknown_step() != nullptr || !all_known;
  run_->record(events::kRunEnded, {{"state", failed ? "failed" : "cancelled"},
                                   {"reason", with_undo(run_->state().reason)}});
}

}  // namespace verger::controller::detail
