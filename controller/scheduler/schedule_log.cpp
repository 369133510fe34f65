#include "controller/scheduler/schedule_log.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/journal/append_and_fold.h"

namespace verger::controller {

using nlohmann::json;

namespace {

constexpr std::string_view kScheduleStreams = "schedule/";

Result<void> fold_schedule(ScheduleState& state, const JournalEvent& event) {
  const auto data = json::parse(event.data, nullptr, false);
  if (!data.is_object() ||
      (event.type != events::kScheduleSettled && event.type != events::kScheduleWaiting &&
       event.type != events::kScheduleLate && event.type != events::kScheduleTooOld)) {
    return Error{Errc::kCorruption, fmt::format("{}: unknown event {}", event.stream, event.type)};
  }
  state.revision = event.revision;
  if (event.type == events::kScheduleLate) {
    state.late = data.value("reason", std::string());
    return {};
  }
  if (event.type == events::kScheduleTooOld) {
    state.too_old = data.value("reason", std::string());
    return {};
  }
  if (event.type == events::kScheduleWaiting) {
    state.waiting = data.value("reason", std::string());
    return {};
  }
  VERGER_TRY(state.settled, parse_ticks(data.value("due", std::string())));
  state.outcome = data.value("outcome", std::string());
  state.run = data.value("run", std::string());
  state.plan = data.value("plan", std::string());
  state.reason = data.value("reason", std::string());
  state.waiting.clear();
  return {};
}

}  // namespace

Result<void> ScheduleLog::load() {
  VERGER_TRY(const auto streams, journal_.streams(kScheduleStreams));
  for (const auto& stream : streams) {
    const auto slash = stream.find('/', kScheduleStreams.size());
    if (slash == std::string::npos) {
      return Error{Errc::kCorruption, fmt::format("{}: no such stream was ever written", stream)};
    }
    auto& state = states_[{stream.substr(kScheduleStreams.size(), slash - kScheduleStreams.size()),
                           stream.substr(slash + 1)}];
    VERGER_TRY(const auto events, journal_.read(stream));
    for (const auto& event : events) {
      VERGER_RETURN_IF_ERROR(fold_schedule(state, event));
    }
  }
  return {};
}

const ScheduleState& ScheduleLog::state(const ScheduleKey& key) const {
  static const ScheduleState kNothing;
  const auto found = states_.find(key);
  return found == states_.end() ? kNothing : found->second;
}

Result<void> ScheduleLog::record(const ScheduleKey& key, std::string_view type, const json& data) {
  auto& state = states_[key];
  return append_and_fold(journal_, fmt::format("{}{}/{}", kScheduleStreams, key.first, key.second),
                         epoch_, state.revision, {NewEvent{std::string(type), data.dump()}},
                         [&state](const auto& event) { return fold_schedule(state, event); });
}

bool ScheduleLog::settle(const ScheduleKey& key, Ticks due, json data) {
  data["due"] = format_ticks(due);
  const auto result = record(key, events::kScheduleSettled, data);
  if (!result) {
    log_.error("a due time could not be settled",
               {{"policy", key.first}, {"reason", result.error().message}});
  }
  return result.has_value();
}

void ScheduleLog::set_waiting(const ScheduleKey& key, Ticks due, const std::string& reason) {
  if (state(key).waiting != reason) {
    static_cast<void>(
        record(key, events::kScheduleWaiting, {{"due", format_ticks(due)}, {"reason", reason}}));
  }
}

void ScheduleLog::set_late(const ScheduleKey& key, std::optional<Ticks> deadline,
                           const std::string& reason) {
  if (state(key).late != reason) {
    static_cast<void>(record(
        key, events::kScheduleLate,
        {{"deadline", deadline ? json(format_ticks(*deadline)) : json()}, {"reason", reason}}));
  }
}

void ScheduleLog::set_too_old(const ScheduleKey& key, Ticks since, const std::string& reason) {
  if (state(key).too_old != reason) {
    static_cast<void>(
        record(key, events::kScheduleTooOld, {{"since", format_ticks(since)}, {"reason", reason}}));
  }
}

}  // namespace verger::controller
