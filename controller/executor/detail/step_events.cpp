#include <algorithm>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/run_events.h"
#include "controller/executor/events.h"
#include "controller/executor/gate_board.h"
#include "controller/journal/member_names.h"
#include "engine/base/clock.h"
#include "engine/base/json_number.h"

namespace verger::controller::detail {
namespace {

using nlohmann::json;

/// When the step was last heard of.
Ticks last_news(const StepState& step) {
  const auto since = step.since.value_or(Ticks());
  return std::max(since, step.phase.at);
}

void take_phase(const json& progress, Ticks at, PhaseSeen& seen) {
  const auto phase = progress.value("phase", std::string());
  // Journals of former versions have chunks alone.
  const auto done = json_integer_or<std::int64_t>(
      progress, progress.contains("done") ? "done" : "chunks_done", -1);
  if (phase != seen.phase || done < seen.done) {
    seen = {.phase = phase, .first_done = done, .done = done, .since = at, .at = at};
  }
  seen.done = done;
  seen.at = at;
}

std::string with_outcome(const StepState& step, const json& data, Ticks at) {
  auto list = json::parse(step.outcomes, nullptr, false);
  if (const auto outcome = data.value("outcome", std::string()); !outcome.empty()) {
    list.push_back({{"attempt", step.attempt},
                    {"outcome", outcome},
                    {"reason", data.value("reason", std::string())},
                    {"at", format_ticks(at)}});
  }
  return list.dump();
}

/// A gate that was closed before keeps its "since".
std::string closed_gates(const std::string& before, json now, Ticks at) {
  const auto known = json::parse(before, nullptr, false);
  for (auto& gate : now) {
    gate["since"] = format_ticks(at);
    for (const auto& old : known) {
      if (old.at("gate") == gate.at("gate") && old.at("node") == gate.at("node")) {
        gate["since"] = old.at("since");
      }
    }
  }
  return now.dump();
}

bool is_of_gate(const RunAlert& alert) {
  const auto what = std::string_view(alert.key).substr(alert.key.find('/') + 1);
  return what.starts_with("gate") || what == "not-leader" || what == "fit";
}

bool has_gate_code(const json& gates, std::string_view code) {
  return std::ranges::any_of(
      gates, [code](const json& gate) { return gate.value("code", std::string()) == code; });
}

}  // namespace

void set_status(StepState& step, StepStatus status, Ticks at) {
  if (step.status == StepStatus::kActing && status != StepStatus::kActing && step.since) {
    // Time in which it could not be seen does not count as work.
    const auto until = status == StepStatus::kUnknown ? last_news(step) : at;
    step.active_ms += (until.value() - step.since->value()) / kTicksPerMillisecond;
  }
  if (step.status != status) {
    step.status = status;
    step.since = at;
  }
}

void end_waiting(RunState& state, const std::string& step, Ticks at) {
  auto& waiting = state.steps.at(step);
  if (waiting.status != StepStatus::kWaiting) {
    return;
  }
  count_time(waiting.time, part_of(waiting), at);
  waiting.time.counted.reset();
  set_status(waiting, StepStatus::kPending, at);
  waiting.reason.clear();
  waiting.gates = "[]";
  waiting.does_not_fit_since.reset();
  clear_alerts(state, at,
               [&](const auto& alert) { return alert.step == step && is_of_gate(alert); });
}

/// What steps noted has the names of today also where version 0.1 wrote it.
bool apply_to_step(RunState& state, const JournalEvent& event, const nlohmann::json& data) {
  const auto found = state.steps.find(data.at("step").get<std::string>());
  if (found == state.steps.end()) {
    return false;
  }
  auto& step = found->second;
  const std::string_view type = event.type;
  const auto reason = data.value("reason", std::string());
  const auto clear_own = [&](const auto& which) {
    clear_alerts(state, event.at,
                 [&](const auto& alert) { return alert.step == found->first && which(alert); });
  };
  if (!step.ended) {  // its undo follows the work of other steps, whose time is theirs
    step.time.counted = step.time.counted.value_or(state.last_step_end.value_or(state.started_at));
    count_time(step.time, part_of(step), event.at);
  }
  if (type == events::kStepWaiting) {
    set_status(step, StepStatus::kWaiting, event.at);
    step.reason = reason;
    step.gates = closed_gates(
        step.gates, with_current_gate_names(data.value("gates", json::array())), event.at);
    if (has_gate_code(data.value("gates", json::array()), "does-not-fit")) {
      step.does_not_fit_since = step.does_not_fit_since.value_or(event.at);
    }
  } else if (type == events::kStepIntended) {
    set_status(step, StepStatus::kActing, event.at);
    step.gates = "[]";
    step.since = event.at;
    step.attempt = data.at("attempt").get<std::int32_t>();
    step.operation = data.at("operation").get<std::string>();
    step.memo = in_snake_case(data.at("memo"));
    step.not_seen = with_current_gate_names(data.value("not_seen", json::array())).dump();
    step.acted = false;
    step.interrupting = false;
    step.reason.clear();
    step.started = step.started.value_or(event.at);
    step.does_not_fit_since.reset();
    step.undo_end.reset();
    clear_own(is_of_gate);
  } else if (type == events::kStepActed) {
    step.acted = data.at("answer").get<std::string>() == "accepted";
    step.memo = step.memo.merged_with(in_snake_case(data.value("memo", json::object())));
    if (!step.acted) {
      set_status(step, StepStatus::kUnknown, event.at);
      step.reason = reason;
    }
  } else if (type == events::kStepUnknown) {
    set_status(step, StepStatus::kUnknown, event.at);
    step.reason = reason;
  } else if (type == events::kStepProgress) {
    set_status(step, StepStatus::kActing, event.at);
    step.progress = in_snake_case(data.at("progress"));
    take_phase(*step.progress, event.at, step.phase);
    step.active_ms -= data.value("unwatched_ms", std::int64_t{0});
    step.memo = step.memo.merged_with(in_snake_case(data.value("memo", json::object())));
    step.reason.clear();
  } else if (type == events::kStepRetry) {
    step.outcomes = with_outcome(step, data, event.at);
    set_status(step, StepStatus::kPending, event.at);
    step.attempt -= data.value("counts", true) ? 0 : 1;
    step.interrupting = false;
    step.reason = reason;
  } else if (type == events::kStepInterrupting) {
    step.interrupting = true;
  } else if (type == events::kStepInterrupted) {
    step.outcomes = with_outcome(step, data, event.at);
    set_status(step, StepStatus::kPending, event.at);
    step.attempt -= 1;
    step.interrupting = false;
    step.reason = reason;
  } else if (type == events::kStepDone) {
    set_status(step, StepStatus::kDone, event.at);
    step.result = in_snake_case(data.at("result"));
    step.reason.clear();
    step.ended = event.at;
    clear_own([](const auto&) { return true; });
  } else if (type == events::kStepFailed) {
    set_status(step, StepStatus::kFailed, event.at);
    step.reason = reason;
    step.ended = event.at;
    clear_own([](const auto& alert) { return !outlives_run(alert); });
  } else if (type == events::kStepSkipped) {
    step.end_unseen = step.status == StepStatus::kActing || step.status == StepStatus::kUnknown;
    set_status(step, StepStatus::kSkipped, event.at);
    step.reason = reason;
    step.ended = event.at;
    clear_own([](const auto& alert) { return !outlives_run(alert); });
  } else if (type == events::kUndoIntended) {
    step.undoing = true;
    step.undo_operation = data.at("operation").get<std::string>();
    step.undo_attempt = data.at("attempt").get<std::int32_t>();
  } else if (type == events::kStepUndone) {
    set_status(step, StepStatus::kUndone, event.at);
    step.undoing = false;
    step.end_unseen = false;
    step.undo_end = UndoEnd{.undone = true, .reason = {}, .command = {}, .at = event.at};
    clear_own([](const auto&) { return true; });
  } else if (type == events::kUndoFailed) {
    step.undoing = false;
    step.reason = reason;
    step.undo_end = UndoEnd{.undone = false,
                            .reason = reason,
                            .command = data.value("command", std::string()),
                            .at = event.at};
  } else {
    return false;
  }
  if (step.ended == event.at) {
    state.last_step_end = event.at;
  }
  return true;
}

}  // namespace verger::controller::detail
