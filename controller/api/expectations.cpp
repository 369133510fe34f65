#include <algorithm>

#include <nlohmann/json.hpp>

#include "controller/api/views.h"
#include "engine/base/clock.h"
#include "planner/operations.h"

// How long plans and runs take.
namespace verger::controller::views {
namespace {

using nlohmann::json;

/// True for a step of the operation's own work.
bool is_work(const planner::Plan& plan, const planner::Step& step) {
  const auto* operation = planner::operation_of(plan.policy);
  return operation != nullptr && operation->is_work(step);
}

json in_seconds(const planner::DurationRange& range) {
  return {{"min", range.low_ms / 1'000}, {"max", (range.high_ms + 999) / 1'000}};
}

/// What is left of a run; nullopt: the operation's own work has no expectation.
struct Left {
  planner::DurationRange time;
  bool overdue = false;
};

std::optional<Left> left_of(const RunState& run, Ticks now) {
  Left left;
  for (const auto& id : run.order) {
    const auto stage = std::ranges::find(run.plan->stages, id, &planner::Stage::id);
    for (const auto& group : stage->groups) {
      planner::DurationRange longest;
      for (const auto& step : group) {
        const auto& state = run.steps.at(step.id);
        if (state.status == StepStatus::kDone || state.status == StepStatus::kSkipped) {
          continue;
        }
        if (is_work(*run.plan, step) && step.expected.high_ms == 0) {
          return std::nullopt;
        }
        const bool acting = state.status == StepStatus::kActing && state.since;
        const auto gone =
            acting ? (now.value() - state.since->value()) / kTicksPerMillisecond : std::int64_t{0};
        left.overdue =
            left.overdue || (acting && step.expected.high_ms > 0 && gone > step.expected.high_ms);
        longest.low_ms = std::max(longest.low_ms, step.expected.low_ms - gone);
        longest.high_ms = std::max(longest.high_ms, step.expected.high_ms - gone);
      }
      left.time.low_ms += longest.low_ms;
      left.time.high_ms += longest.high_ms;
    }
  }
  return left;
}

}  // namespace

json expected_seconds(const planner::Plan& plan) {
  planner::DurationRange sum;
  for (const auto& stage : plan.stages) {
    if (!stage.if_deferred.empty()) {
      continue;
    }
    for (const auto& group : stage.groups) {
      planner::DurationRange longest;
      for (const auto& step : group) {
        if (is_work(plan, step) && step.expected.high_ms == 0) {
          return nullptr;
        }
        longest.low_ms = std::max(longest.low_ms, step.expected.low_ms);
        longest.high_ms = std::max(longest.high_ms, step.expected.high_ms);
      }
      sum.low_ms += longest.low_ms;
      sum.high_ms += longest.high_ms;
    }
  }
  return in_seconds(sum);
}

json expected_end(const RunState& run, Ticks now, std::optional<Ticks> resumes) {
  const bool stands = run.status == RunStatus::kWaiting || run.status == RunStatus::kPaused ||
                      run.status == RunStatus::kPausing;
  if (run.status != RunStatus::kRunning && !(stands && resumes)) {
    return nullptr;
  }
  const auto left = left_of(run, now);
  if (!left) {
    return nullptr;
  }
  const auto from = stands ? std::max(now, *resumes) : now;
  const auto at = [from](std::int64_t ms) {
    return format_ticks(Ticks(from.value() + ms * kTicksPerMillisecond));
  };
  json out{{"earliest", at(left->time.low_ms)},
           {"latest", at(left->time.high_ms)},
           {"overdue", left->overdue},
           {"resumes_at", nullptr},
           {"seconds_left", in_seconds(left->time)}};
  if (stands) {
    out["resumes_at"] = format_ticks(*resumes);
  }
  return out;
}

json timeline(StepTime time) {
  const auto seconds = [](std::int64_t ms) { return static_cast<double>(ms) / 1'000; };
  return {{"preparing_seconds", seconds(time.preparing_ms)},
          {"waiting_seconds", seconds(time.waiting_ms)},
          {"acting_seconds", seconds(time.acting_ms)},
          {"observing_seconds", seconds(time.observing_ms)}};
}

json timeline(const RunState& run) {
  if (!run.ended_at) {
    return nullptr;
  }
  std::int64_t own_work = 0;
  std::int64_t others = 0;
  std::int64_t waiting = 0;
  std::int64_t preparing = 0;
  for (const auto& stage : run.plan->stages) {
    for (const auto& group : stage.groups) {
      StepTime longest;
      std::int64_t longest_work = 0;
      for (const auto& step : group) {
        const auto& time = run.steps.at(step.id).time;
        auto& work = is_work(*run.plan, step) ? longest_work : longest.observing_ms;
        work = std::max(work, time.acting_ms + time.observing_ms);
        longest.waiting_ms = std::max(longest.waiting_ms, time.waiting_ms);
        longest.preparing_ms = std::max(longest.preparing_ms, time.preparing_ms);
      }
      own_work += longest_work;
      others += longest.observing_ms;
      waiting += longest.waiting_ms;
      preparing += longest.preparing_ms;
    }
  }
  const auto seconds = [](std::int64_t ms) { return static_cast<double>(ms) / 1'000; };
  return {{"total_seconds",
           seconds((run.ended_at->value() - run.started_at.value()) / kTicksPerMillisecond)},
          {"work_seconds", seconds(own_work)},
          {"other_steps_seconds", seconds(others)},
          {"waiting_seconds", seconds(waiting)},
          {"preparing_seconds", seconds(preparing)},
          {"paused_seconds", seconds(run.paused_ms)}};
}

}  // namespace verger::controller::views
