#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/run_driver.h"
#include "controller/executor/events.h"

// A step that may have acted: its node is looked at until it can tell how that ended.
namespace verger::controller::detail {

using nlohmann::json;

namespace {

bool ends_intent(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::kDone:
    case Verdict::Kind::kNotHappened:
    case Verdict::Kind::kStopped:
    case Verdict::Kind::kFailed:
      return true;
    case Verdict::Kind::kRunning:
    case Verdict::Kind::kNotArrived:
    case Verdict::Kind::kUnknown:
      return false;
  }
  return false;
}

}  // namespace

net::awaitable<std::optional<StepEnd>> RunDriver::watch_step(const planner::Stage& stage,
                                                             const planner::Step& step) {
  auto& kind = kind_of(step);
  for (;;) {
    auto context = context_of(step, co_await look());
    auto verdict = co_await kind.observe(context);
    check();
    // Seen to have ended, by others' work perhaps, while nobody has answered what was asked.
    if (ends_intent(verdict.kind) && !context.state.acted &&
        !co_await shut_out_late_request(context)) {
      verdict = {.kind = Verdict::Kind::kUnknown,
                 .note = "what was asked may still arrive, and its agent does not answer",
                 .outcome = {},
                 .values = {}};
    }
    auto news = new_values(verdict.values);
    const auto add = [&news](std::string_view type, const json& data) {
      news.push_back({std::string(type), data.dump()});
    };
    switch (verdict.kind) {
      case Verdict::Kind::kRunning: {
        const auto& state = state_of(step);
        auto& told = run_->progress_told[step.id];
        const bool memo_is_new = !parsed(verdict.memo).empty();
        const bool changed = parsed(state.progress) != parsed(verdict.note);
        const bool due = monotonic() - told >= core_->parts.options.progress_interval;
        if (state.status == StepStatus::kUnknown || memo_is_new || (changed && due)) {
          told = monotonic();
          add(events::kStepProgress, {{"step", step.id},
                                      {"progress", parsed(verdict.note)},
                                      {"memo", parsed(verdict.memo)}});
        }
        if (!news.empty()) {
          record_all(std::move(news));
        }
        break;
      }
      case Verdict::Kind::kDone:
        failpoint(step, "before-outcome");
        add(events::kStepDone, {{"step", step.id}, {"result", parsed(verdict.note)}});
        record_all(std::move(news));
        failpoint(step, "after-outcome");
        if (broken().second_resign && step.cost.leader_move &&
            context.snapshot.leader() != nullptr) {
          static_cast<void>(co_await context.peers->resign(context.snapshot.leader()->name));
        }
        co_return StepEnd::kDone;
      case Verdict::Kind::kNotArrived:
        if (cancelling() || is_skipped(step) || pausing()) {
          if (co_await give_up_intent(step, context, "it was never asked", false)) {
            co_return std::nullopt;
          }
          co_await nap(poll());
          break;
        }
        co_await act(stage, step, context, true);
        if (const auto status = state_of(step).status;
            status != StepStatus::kActing && status != StepStatus::kUnknown) {
          co_return std::nullopt;  // refused: the intent is given up, the step begins anew
        }
        break;
      case Verdict::Kind::kNotHappened:
        add(events::kStepRetry, {{"step", step.id},
                                 {"reason", verdict.note},
                                 {"outcome", verdict.outcome},
                                 {"counts", true}});
        record_all(std::move(news));
        back_off(step, verdict.note);
        co_await nap(poll());
        co_return std::nullopt;
      case Verdict::Kind::kStopped:
        add(events::kStepInterrupted,
            {{"step", step.id}, {"reason", verdict.note}, {"outcome", verdict.outcome}});
        record_all(std::move(news));
        if (!context.state.interrupting) {
          back_off(step, verdict.note);
        }
        co_return std::nullopt;
      case Verdict::Kind::kFailed:
        add(events::kStepFailed, {{"step", step.id}, {"code", "failed"}, {"reason", verdict.note}});
        record_all(std::move(news));
        co_return StepEnd::kFailed;
      case Verdict::Kind::kUnknown: {
        const auto& state = state_of(step);
        if (state.status != StepStatus::kUnknown || state.reason != verdict.note) {
          add(events::kStepUnknown, {{"step", step.id}, {"reason", verdict.note}});
        }
        if (is_skipped(step)) {
          add(events::kStepSkipped,
              {{"step", step.id},
               {"reason",
                fmt::format("its node is skipped; the outcome is not known: {}", verdict.note)}});
        }
        if (!news.empty()) {
          record_all(std::move(news));
        }
        if (is_skipped(step)) {
          co_return StepEnd::kSkipped;
        }
        break;
      }
    }
    if (past_deadline(stage, step, "under way")) {
      record(events::kStepFailed,
             {{"step", step.id},
              {"code", "deadline"},
              {"reason", fmt::format("deadline passed; {}", state_of(step).reason)}});
      co_return StepEnd::kFailed;
    }
    if (verdict.kind != Verdict::Kind::kNotArrived) {
      co_await interrupt_if_wanted(step, context_of(step, std::move(context.snapshot)));
      co_await nap(poll());
    }
  }
}

}  // namespace verger::controller::detail
