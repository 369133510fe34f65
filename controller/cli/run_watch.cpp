#include "controller/cli/run_watch.h"

#include <chrono>
#include <fmt/format.h>
#include <map>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/table.h"

namespace verger::cli {
namespace {

using nlohmann::json;

/// How long a step's details may change before they are printed again.
constexpr std::chrono::seconds kQuiet{5};

std::string short_id(const std::string& id) { return id.substr(0, 12); }

bool has_ended(const std::string& state) {
  return state == "done" || state == "failed" || state == "cancelled";
}

std::string progress_text(const json& step) {
  const auto progress = step.value("progress", json());
  if (!progress.is_object()) {
    return "";
  }
  auto text = text_of(progress, "phase");
  if (const auto total = number_of(progress, "chunks_total"); total > 0) {
    text += fmt::format(", chunk {} of {}", number_of(progress, "chunks_done"), total);
  }
  if (const auto saved = number_of(progress, "bytes_saved"); saved > 0) {
    text += fmt::format(", {} freed", human_bytes(saved));
  }
  return text;
}

/// One line per step that has changed since the last call.
class ChangePrinter {
 public:
  explicit ChangePrinter(std::ostream& out) : out_(out) {}

  void print(const json& run) {
    const auto now = std::chrono::steady_clock::now();
    for (const auto& stage : list_of(run, "stages")) {
      for (const auto& step : list_of(stage, "steps")) {
        print_step(step, now);
      }
    }
    const auto state = text_of(run, "state");
    const auto reason = text_of(run, "reason");
    // Why a run waits is on the line of the step that waits.
    const bool waits = state == "waiting" || state == "running";
    const auto shown = waits ? "running" : state;
    if (shown != run_state_) {
      run_state_ = shown;
      out_ << fmt::format("run {}: {}{}\n", short_id(text_of(run, "id")), shown,
                          reason.empty() || waits ? "" : ": " + reason)
           << std::flush;
    }
  }

 private:
  struct Seen {
    std::string state;
    std::string details;
    std::chrono::steady_clock::time_point at;
  };

  void print_step(const json& step, std::chrono::steady_clock::time_point now) {
    const auto state = text_of(step, "state");
    auto& seen = seen_[text_of(step, "id")];
    if (seen.state.empty() && state == "pending") {
      return;
    }
    const auto reason = text_of(step, "reason");
    const auto progress = progress_text(step);
    const auto details = reason + progress;
    const bool changed = seen.state != state;
    const bool moved = details != seen.details && now - seen.at >= kQuiet;
    if (!changed && !moved) {
      return;
    }
    seen = {state, details, now};
    out_ << fmt::format("  {:<16} {:<8} {}", text_of(step, "kind"), text_of(step, "node"), state);
    for (const auto& detail : {reason, progress}) {
      if (!detail.empty()) {
        out_ << "  " << detail;
      }
    }
    out_ << '\n' << std::flush;
  }

  std::ostream& out_;
  std::map<std::string, Seen> seen_;
  std::string run_state_;
};

void print_report(const CliContext& context, const json& report) {
  if (const auto point = report.value("point", json()); point.is_object()) {
    context.out << fmt::format("scavenge point {} at position {}\n", number_of(point, "number"),
                               with_separators(number_of(point, "position")));
  }
  Table table({{"node"},
               {"bytes before", Table::Align::kRight},
               {"bytes after", Table::Align::kRight},
               {"records removed", Table::Align::kRight},
               {"point", Table::Align::kRight},
               {"logical digest"},
               {"readable digest"}});
  for (const auto& node : list_of(report, "nodes")) {
    const auto point = node.value("point", json());
    table.add({text_of(node, "name"), optional_number(node, "bytes_before"),
               optional_number(node, "bytes_after"), optional_number(node, "records_removed"),
               point.is_object() ? fmt::format("{} @ {}", number_of(point, "number"),
                                               number_of(point, "position"))
                                 : "not seen",
               text_of(node, "logical_digest").substr(0, 12),
               text_of(node, "readable_digest").substr(0, 12)});
  }
  table.print(context.out);
  context.out << fmt::format("leader moves: {} planned, {} by itself\n",
                             number_of(report, "planned_leader_moves"),
                             number_of(report, "unplanned_leader_moves"));
  context.out << "logical digests of the nodes: "
              << verdict(report, "digests_equal", "equal", "DIFFERENT", "not compared") << '\n';
  context.out << "what clients can read: "
              << verdict(report, "readable_unchanged", "unchanged", "CHANGED", "not compared")
              << '\n';
  for (const auto& note : list_of(report, "notes")) {
    if (note.is_string()) {
      context.out << "note: " << note.get<std::string>() << '\n';
    }
  }
}

/// What the waiting steps wait for: value, limit, since when.
void print_gates(const CliContext& context, const json& run) {
  Table table({{"waits for"}, {"node"}, {"now"}, {"limit"}, {"since"}, {"why"}});
  bool any = false;
  for (const auto& stage : list_of(run, "stages")) {
    for (const auto& step : list_of(stage, "steps")) {
      if (text_of(step, "state") != "waiting") {
        continue;
      }
      for (const auto& gate : list_of(step, "waiting_for")) {
        any = true;
        table.add({text_of(gate, "gate"), text_of(gate, "node"), text_of(gate, "value"),
                   text_of(gate, "limit"), text_of(gate, "since").substr(0, 19),
                   text_of(gate, "reason")});
      }
    }
  }
  if (any) {
    table.print(context.out);
  }
}

}  // namespace

int exit_code_of(const json& run) {
  const auto state = text_of(run, "state");
  if (state == "done") {
    return kDone;
  }
  if (state == "failed") {
    return kFailed;
  }
  return state == "cancelled" || state == "paused" ? kStopped : kStillWaiting;
}

void print_run(const CliContext& context, const json& run) {
  const auto reason = text_of(run, "reason");
  context.out << fmt::format("run {}  cluster {}  plan {}  {}{}\n", short_id(text_of(run, "id")),
                             text_of(run, "cluster"), short_id(text_of(run, "plan")),
                             text_of(run, "state"), reason.empty() ? "" : ": " + reason);
  Table table({{"stage"}, {"step"}, {"node"}, {"state"}, {"since"}, {"what"}});
  for (const auto& stage : list_of(run, "stages")) {
    for (const auto& step : list_of(stage, "steps")) {
      auto what = text_of(step, "reason");
      if (const auto progress = progress_text(step); !progress.empty()) {
        what += (what.empty() ? "" : ", ") + progress;
      }
      table.add({text_of(stage, "name"), text_of(step, "kind"), text_of(step, "node"),
                 text_of(step, "state"), text_of(step, "since").substr(0, 19), what});
    }
  }
  table.print(context.out);
  if (const auto end = run.value("expected_end", json()); end.is_object()) {
    context.out << fmt::format("expected to end between {} and {}",
                               text_of(end, "earliest").substr(0, 16),
                               text_of(end, "latest").substr(0, 16));
    const auto hours = run.value("hours", json());
    const auto until = hours.is_object() ? text_of(hours, "until") : std::string();
    context.out << (until.empty() ? "" : "; its hours end at " + until.substr(0, 16)) << " UTC\n";
  }
  print_gates(context, run);
  if (const auto report = run.value("report", json()); report.is_object()) {
    print_report(context, report);
  }
}

int watch_run(const CliContext& context, const std::string& id, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  ChangePrinter changes(context.out);
  std::int64_t after = 0;
  int failures = 0;
  while (true) {
    // Waiting for the next event is the controller's part, so there is no sleep here.
    const auto events = context.api.get(
        fmt::format("/events?run={}&after={}&wait=2", http::percent_encode(id), after));
    const auto run = context.api.get("/runs/" + http::percent_encode(id));
    if (!events || !run) {
      const auto& failure = events ? run.error() : events.error();
      // A controller that restarts in the middle of a run is not a reason to stop watching.
      if (!failure.problem.is_null() || ++failures > 30) {
        return context.fail(failure);
      }
      context.api.wait(std::chrono::milliseconds(500));
      continue;
    }
    failures = 0;
    if (context.json) {
      for (const auto& event : list_of(*events, "events")) {
        context.out << event.dump() << '\n' << std::flush;
      }
    } else {
      changes.print(*run);
    }
    after = std::max(after, number_of(*events, "next"));
    const auto state = text_of(*run, "state");
    if (has_ended(state)) {
      if (context.json) {
        context.out << run->dump() << '\n';
      } else if (const auto report = run->value("report", json()); report.is_object()) {
        print_report(context, report);
      }
      return exit_code_of(*run);
    }
    if (state == "paused") {
      context.err << fmt::format(
          "verger: the run is paused; continue it with: verger run resume {}\n", short_id(id));
      return kStopped;
    }
    if (std::chrono::steady_clock::now() >= end) {
      context.err << fmt::format(
          "verger: run {} has not ended yet ({}); look again with: verger run watch {}\n",
          short_id(id), state, short_id(id));
      return kStillWaiting;
    }
  }
}

}  // namespace verger::cli
