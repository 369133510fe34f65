#include "controller/cli/run_watch.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <map>
#include <ostream>
#include <set>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/table.h"

namespace verger::cli {
namespace {

using nlohmann::json;

/// How long a step's details may change before they are printed again.
constexpr std::chrono::seconds kQuiet{5};
/// A controller that restarts on another machine is back within this time.
constexpr std::chrono::seconds kControllerAway{120};

std::string short_id(const std::string& id) { return id.substr(0, 12); }

/// A stage only for a node that leads when its turn comes: hidden until that happens.
bool is_unneeded(const json& stage) {
  const auto steps = list_of(stage, "steps");
  return !text_of(stage, "if_put_off").empty() && std::ranges::all_of(steps, [](const auto& step) {
    return text_of(step, "state") == "pending";
  });
}

/// No answer at all, or one that says "not now", as while one of a pair takes over.
bool is_away(const CallFailure& failure) {
  const auto code = text_of(failure.problem, "code");
  return failure.problem.is_null() || code == "unavailable" || code == "standby";
}

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
  if (const auto rate = progress.find("chunks_per_hour");
      rate != progress.end() && rate->is_number()) {
    text += fmt::format(", {:.0f} an hour", rate->get<double>());
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
    const auto alerts = list_of(run, "alerts");
    for (; alerts_ < alerts.size(); ++alerts_) {
      out_ << "  alert: " << (alerts[alerts_].is_string() ? alerts[alerts_].get<std::string>() : "")
           << '\n';
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
  std::size_t alerts_ = 0;
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
  bool seen = false;
  for (const auto& node : list_of(report, "nodes")) {
    const auto point = node.value("point", json());
    seen = true;
    table.add({text_of(node, "name"), optional_number(node, "bytes_before"),
               optional_number(node, "bytes_after"), optional_number(node, "records_removed"),
               point.is_object() ? fmt::format("{} @ {}", number_of(point, "number"),
                                               number_of(point, "position"))
                                 : "not seen",
               text_of(node, "logical_digest").substr(0, 12),
               text_of(node, "readable_digest").substr(0, 12)});
  }
  if (seen) {
    table.print(context.out);
  } else {
    context.out << "no node's scavenge was seen to end\n";
  }
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
  Table table({{"waits for"},
               {"node"},
               {"now", Table::Align::kWrap},
               {"limit", Table::Align::kWrap},
               {"since"},
               {"why", Table::Align::kWrap}});
  bool any = false;
  std::string alert_at;  // the first
  std::string node;
  for (const auto& stage : list_of(run, "stages")) {
    for (const auto& step : list_of(stage, "steps")) {
      if (text_of(step, "state") != "waiting") {
        continue;
      }
      for (const auto& gate : list_of(step, "waiting_for")) {
        any = true;
        const auto at = text_of(gate, "alert_at");
        if (!at.empty() && (alert_at.empty() || at < alert_at)) {
          alert_at = at;
          node = text_of(step, "node");
        }
        table.add({text_of(gate, "gate"), text_of(gate, "node"), text_of(gate, "value"),
                   text_of(gate, "limit"), text_of(gate, "since").substr(0, 19),
                   text_of(gate, "reason")});
      }
    }
  }
  if (any) {
    table.print(context.out);
  }
  if (!alert_at.empty()) {
    context.out << fmt::format("where it is still closed, a person is told at {} UTC",
                               alert_at.substr(0, 16));
    context.out << (node.empty() ? "\n"
                                 : fmt::format("; to leave {0} out: verger run skip {1} {0}\n",
                                               node, short_id(text_of(run, "id"))));
  }
}

/// A node whose outcome cannot be seen holds its run up until it is back, or left out.
void print_ways_out(const CliContext& context, const json& run) {
  std::set<std::string> nodes;
  for (const auto& stage : list_of(run, "stages")) {
    for (const auto& step : list_of(stage, "steps")) {
      if (text_of(step, "state") == "unknown" && !text_of(step, "node").empty()) {
        nodes.insert(text_of(step, "node"));
      }
    }
  }
  for (const auto& node : nodes) {
    context.out << fmt::format(
        "{0} holds the run up until it can be seen; to leave it out: verger run skip {1} {0}\n",
        node, short_id(text_of(run, "id")));
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
  Table table({{"stage", Table::Align::kRight},
               {"step"},
               {"node"},
               {"state"},
               {"since"},
               {"what", Table::Align::kWrap}});
  std::size_t number = 0;
  for (const auto& stage : list_of(run, "stages")) {
    if (is_unneeded(stage)) {
      continue;
    }
    ++number;
    for (const auto& step : list_of(stage, "steps")) {
      auto what = text_of(step, "reason");
      if (const auto progress = progress_text(step); !progress.empty()) {
        what += (what.empty() ? "" : ", ") + progress;
      }
      table.add({std::to_string(number), text_of(step, "kind"), text_of(step, "node"),
                 text_of(step, "state"), text_of(step, "since").substr(0, 19), what});
    }
  }
  table.print(context.out);
  if (const auto end = run.value("expected_end", json()); end.is_object()) {
    // A range whose ends have passed would say that it ends now.
    context.out << (end.value("overdue", false)
                        ? fmt::format("it takes longer than was expected; what is left after this "
                                      "step: until {} at the earliest",
                                      text_of(end, "earliest").substr(0, 16))
                        : fmt::format("expected to end between {} and {}",
                                      text_of(end, "earliest").substr(0, 16),
                                      text_of(end, "latest").substr(0, 16)));
    const auto hours = run.value("hours", json());
    const auto until = hours.is_object() ? text_of(hours, "until") : std::string();
    context.out << (until.empty() ? "" : "; its hours end at " + until.substr(0, 16)) << " UTC\n";
  }
  print_gates(context, run);
  print_ways_out(context, run);
  for (const auto& alert : list_of(run, "alerts")) {
    if (alert.is_string()) {
      context.out << "alert: " << alert.get<std::string>() << '\n';
    }
  }
  if (const auto report = run.value("report", json()); report.is_object()) {
    print_report(context, report);
  }
}

int watch_run(const CliContext& context, const std::string& id, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  ChangePrinter changes(context.out);
  std::int64_t after = 0;
  std::optional<std::chrono::steady_clock::time_point> away_since;
  while (true) {
    // Waiting for the next event is the controller's part, so there is no sleep here.
    const auto events = context.api.get(
        fmt::format("/events?run={}&after={}&wait=2", http::percent_encode(id), after));
    const auto run = context.api.get("/runs/" + http::percent_encode(id));
    if (!events || !run) {
      const auto& failure = events ? run.error() : events.error();
      if (!is_away(failure)) {
        return context.fail(failure);
      }
      // A controller that restarts in the middle of a run is not a reason to stop watching, and its
      // silence says nothing about the run.
      const auto now = std::chrono::steady_clock::now();
      if (!away_since) {
        away_since = now;
        context.err << fmt::format(
            "verger: {}\nverger: the run goes on when vergerd is there again; waiting for it\n",
            failure.message);
      }
      if (now >= end || now - *away_since >= kControllerAway) {
        context.err << fmt::format(
            "verger: vergerd is still not there, so what became of run {} is not known; once it "
            "is: verger run watch {}\n",
            short_id(id), short_id(id));
        return kStillWaiting;
      }
      context.api.wait(std::chrono::milliseconds(500));
      continue;
    }
    away_since.reset();
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
