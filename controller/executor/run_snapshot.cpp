#include "controller/executor/run_snapshot.h"

#include <fmt/format.h>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "controller/executor/gate_board.h"
#include "controller/executor/step_support.h"
#include "controller/journal/member_names.h"
#include "planner/operations.h"

namespace verger::controller {
namespace {

using nlohmann::json;

/// Of ended runs the journal may have nothing but the first event, the last one and the snapshot: a
/// newer format still reads those from 5 on, the first under which that could be.
constexpr int kFormat = 5;
constexpr int kOldestFormat = 5;
constexpr std::size_t kEventsAtOnce = 1'000;

// The members of each part, named once for writing and for reading. The plan, and what follows from
// it at once, come from the stream's first event.
template <class Archive, class Phase>
  requires std::is_same_v<std::remove_const_t<Phase>, PhaseSeen>
void members(Archive& archive, Phase& phase) {
  archive("phase", phase.phase);
  archive("first_chunk", phase.first_done);
  archive("chunk", phase.done);
  archive("since", phase.since);
  archive("at", phase.at);
}

template <class Archive, class Time>
  requires std::is_same_v<std::remove_const_t<Time>, StepTime>
void members(Archive& archive, Time& time) {
  archive("preparing_ms", time.preparing_ms);
  archive("waiting_ms", time.waiting_ms);
  archive("acting_ms", time.acting_ms);
  archive("observing_ms", time.observing_ms);
  archive("counted", time.counted);
}

template <class Archive, class End>
  requires std::is_same_v<std::remove_const_t<End>, UndoEnd>
void members(Archive& archive, End& end) {
  archive("undone", end.undone);
  archive("reason", end.reason);
  archive("command", end.command);
  archive("at", end.at);
}

template <class Archive, class Step>
  requires std::is_same_v<std::remove_const_t<Step>, StepState>
void members(Archive& archive, Step& step) {
  archive("status", step.status);
  archive("attempt", step.attempt);
  archive("forgiven", step.attempts_before_rollback);
  archive("operation", step.operation);
  archive("memo", step.memo);
  archive("result", step.result);
  archive("progress", step.progress);
  archive("phase", step.phase);
  archive("reason", step.reason);
  archive("outcomes", step.outcomes);
  archive("gates", step.gates);
  archive("not_seen", step.not_seen);
  archive("acted", step.acted);
  archive("interrupting", step.interrupting);
  archive("undoing", step.undoing);
  archive("end_unseen", step.end_unseen);
  archive("undo_operation", step.undo_operation);
  archive("undo_attempt", step.undo_attempt);
  archive("undo_end", step.undo_end);
  archive("active_ms", step.active_ms);
  archive("does_not_fit_since", step.does_not_fit_since);
  archive("time", step.time);
  archive("since", step.since);
  archive("started", step.started);
  archive("ended", step.ended);
}

template <class Archive, class Stage>
  requires std::is_same_v<std::remove_const_t<Stage>, StageState>
void members(Archive& archive, Stage& stage) {
  archive("status", stage.status);
  archive("started", stage.started);
  archive("put_off", stage.deferrals);
  archive("rolling_back", stage.rolling_back);
}

template <class Archive, class Move>
  requires std::is_same_v<std::remove_const_t<Move>, LeaderMove>
void members(Archive& archive, Move& move) {
  archive("from", move.from);
  archive("to", move.to);
  archive("planned", move.planned);
  archive("at", move.at);
}

template <class Archive, class Alert>
  requires std::is_same_v<std::remove_const_t<Alert>, RunAlert>
void members(Archive& archive, Alert& alert) {
  archive("key", alert.key);
  archive("step", alert.step);
  archive("reason", alert.reason);
  archive("at", alert.at);
  archive("cleared_at", alert.cleared_at);
}

template <class Archive, class State>
  requires std::is_same_v<std::remove_const_t<State>, RunState>
void members(Archive& archive, State& run) {
  archive("status", run.status);
  archive("reason", run.reason);
  archive("pause_mode", run.pause_mode);
  archive("paused_with_cluster", run.paused_with_cluster);
  archive("ignores_hours", run.ignores_hours);
  archive("paused_ms", run.paused_ms);
  archive("paused_since", run.paused_since);
  archive("last_step_end", run.last_step_end);
  archive("steps", run.steps);
  archive("stages", run.stages);
  archive("order", run.order);
  archive("values", run.values);
  archive("skipped_nodes", run.skipped_nodes);
  archive("disregarded_nodes", run.disregarded_nodes);
  archive("moves", run.moves);
  archive("alerts", run.alerts);
  archive("leader", run.leader);
  archive("ended_at", run.ended_at);
}

template <class Archive, class Duration>
  requires std::is_same_v<std::remove_const_t<Duration>, planner::PastDuration>
void members(Archive& archive, Duration& past) {
  archive("node", past.node);
  archive("kind", past.kind);
  archive("duration_ms", past.duration_ms);
  archive("throttle_percent", past.throttle_percent);
}

template <class Archive, class Summary>
  requires std::is_same_v<std::remove_const_t<Summary>, RunSummary>
void members(Archive& archive, Summary& run) {
  archive("id", run.id);
  archive("cluster", run.cluster);
  archive("operation", run.operation);
  archive("plan", run.plan);
  archive("started_by", run.started_by);
  archive("status", run.status);
  archive("started_at", run.started_at);
  archive("ended_at", run.ended_at);
  archive("durations", run.durations);
  archive("kept", run.kept);
}

class Writer {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    out_[name] = written(value);
  }

  template <class T>
  static std::string text_of(const T& value) {
    Writer writer;
    writer.out_["format"] = kFormat;
    members(writer, value);
    return writer.out_.dump();
  }

 private:
  template <class T>
  static json written(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return to_string(value);
    } else if constexpr (std::is_same_v<T, Ticks>) {
      return value.value();
    } else if constexpr (std::is_same_v<T, JsonObject>) {
      return value->dump();
    } else if constexpr (requires { json(value); }) {
      return value;
    } else {
      Writer writer;
      members(writer, value);
      return std::move(writer.out_);
    }
  }
  template <class T>
  static json written(const std::optional<T>& value) {
    return value ? written(*value) : json();
  }
  template <class T>
  static json written(const std::vector<T>& values) {
    auto out = json::array();
    for (const auto& value : values) {
      out.push_back(written(value));
    }
    return out;
  }
  template <class T>
  static json written(const std::map<std::string, T>& values) {
    auto out = json::object();
    for (const auto& [name, value] : values) {
      out[name] = written(value);
    }
    return out;
  }

  json out_ = json::object();
};

/// Throws what the JSON library does where a member is of another type.
class Reader {
 public:
  explicit Reader(const json& in) : in_(in) {}
  template <class T>
  void operator()(const char* name, T& into) {
    // A member that an older version did not write keeps its default.
    if (const auto found = in_.find(name); found != in_.end()) {
      read(*found, into);
    }
  }

 private:
  template <class T>
  static void read(const json& from, T& into) {
    if constexpr (std::is_enum_v<T>) {
      read_enumerator(from.get_ref<const std::string&>(), into);
    } else if constexpr (std::is_same_v<T, Ticks>) {
      into = Ticks(from.get<std::int64_t>());
    } else if constexpr (std::is_same_v<T, JsonObject>) {
      // In the names of today also where version 0.1 wrote it.
      into = in_snake_case(json::parse(from.get_ref<const std::string&>(), nullptr, false));
    } else if constexpr (requires { from.get<T>(); }) {
      from.get_to(into);
    } else {
      Reader reader(from);
      members(reader, into);
    }
  }
  template <class T>
  static void read(const json& from, std::optional<T>& into) {
    into.reset();
    if (!from.is_null()) {
      read(from, into.emplace());
    }
  }
  template <class T>
  static void read(const json& from, std::vector<T>& into) {
    into.clear();
    for (const auto& value : from) {
      read(value, into.emplace_back());
    }
  }
  template <class T>
  static void read(const json& from, std::map<std::string, T>& into) {
    into.clear();
    for (const auto& [name, value] : from.items()) {
      read(value, into[name]);
    }
  }
  template <class T>
  static void read_enumerator(const std::string& name, T& into) {
    // Names beyond the last enumerator are empty.
    for (std::underlying_type_t<T> i = 0; !to_string(static_cast<T>(i)).empty(); ++i) {
      if (to_string(static_cast<T>(i)) == name) {
        into = static_cast<T>(i);
        return;
      }
    }
    throw std::invalid_argument(fmt::format("\"{}\" is no value here", name));
  }

  const json& in_;
};

template <class T>
Result<void> read_text(const std::string& stream, const std::string& text, T& into) {
  try {
    const auto value = json::parse(text);
    const auto format = value.value("format", 0);
    if (format < kOldestFormat || format > kFormat) {
      return Error{Errc::kUnsupported, fmt::format("{}: a snapshot of another format", stream)};
    }
    Reader reader(value);
    members(reader, into);
    return {};
  } catch (const std::exception& error) {
    return Error{Errc::kCorruption, fmt::format("{}: snapshot: {}", stream, error.what())};
  }
}

/// In the names of today also what version 0.1 wrote.
void rename_members(RunState& state) {
  for (auto& [id, step] : state.steps) {
    for (auto* gates : {&step.gates, &step.not_seen}) {
      *gates = with_current_gate_names(json::parse(*gates, nullptr, false)).dump();
    }
  }
  for (auto& [name, value] : state.values) {
    if (auto parsed = json::parse(value, nullptr, false); !parsed.is_discarded()) {
      value = in_snake_case(std::move(parsed)).dump();
    }
  }
}

/// Nothing where the journal has none that can be used.
Result<std::optional<RunState>> from_snapshot(Journal& journal, const std::string& stream) {
  VERGER_TRY(const auto snapshot, journal.snapshot(stream));
  if (!snapshot) {
    return std::optional<RunState>();
  }
  VERGER_TRY(const auto first, journal.read(stream, Revision(0), 1));
  RunState state;
  for (const auto& event : first) {
    VERGER_RETURN_IF_ERROR(apply(state, event));
  }
  if (!state.plan || !read_text(stream, snapshot->state, state)) {
    return std::optional<RunState>();
  }
  rename_members(state);
  state.revision = snapshot->revision;
  return std::optional(std::move(state));
}

/// What another party had begun took longer than this run saw.
bool did_all_of_it(const StepState& step) {
  return !step.memo->contains("adopted") && !step.memo->value("resumed", false);
}

}  // namespace

RunSummary summary_of(const RunState& run) {
  RunSummary out{.id = run.id,
                 .cluster = run.cluster,
                 .operation = std::string(planner::operation_name(run.plan->policy)),
                 .plan = run.plan->hash,
                 .started_by = run.started_by,
                 .status = run.status,
                 .started_at = run.started_at,
                 .ended_at = run.ended_at,
                 .durations = {},
                 .kept = {}};
  for (const auto& [name, value] : run.values) {
    if (name.starts_with(kKeptValues)) {
      out.kept.emplace(name, value);
    }
  }
  for (const auto& stage : run.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        const auto& state = run.steps.at(step.id);
        if (state.status == StepStatus::kDone && state.attempt > 0 && did_all_of_it(state)) {
          out.durations.push_back({step.node, step.kind, state.active_ms,
                                   steps::int_parameter(step, "throttlePercent", 100)});
        }
      }
    }
  }
  return out;
}

Snapshot snapshot_of(const RunState& run) {
  return {"run/" + run.id, run.revision, Writer::text_of(summary_of(run)), Writer::text_of(run)};
}

Result<RunSummary> parse_summary(const Snapshot& snapshot) {
  RunSummary out;
  VERGER_RETURN_IF_ERROR(read_text(snapshot.stream, snapshot.summary, out));
  return out;
}

Result<RunState> replay_run(Journal& journal, const std::string& stream) {
  VERGER_TRY(auto kept, from_snapshot(journal, stream));
  auto state = std::move(kept).value_or(RunState());
  for (;;) {
    VERGER_TRY(const auto page, journal.read(stream, state.revision, kEventsAtOnce));
    if (page.empty()) {
      break;
    }
    for (const auto& event : page) {
      if (event.type == events::kRunEnded && state.revision == Revision(1) &&
          event.revision.value() > 2) {
        return Error{Errc::kUnsupported,
                     fmt::format("{}: what happened was compacted into a snapshot that this "
                                 "program cannot read; use the newer program",
                                 stream)};
      }
      VERGER_RETURN_IF_ERROR(apply(state, event));
    }
  }
  if (!state.plan) {
    return Error{Errc::kCorruption, fmt::format("{}: it never started", stream)};
  }
  return state;
}

}  // namespace verger::controller
