#include "controller/cli/run_text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/operations/reports.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using std::chrono::seconds;

void append(std::string& text, const std::string& more) {
  if (!more.empty()) {
    text += (text.empty() ? "" : ", ") + more;
  }
}

/// How long a step took, or has taken since its state began.
std::string took_text(const json& step) {
  const auto found = step.is_object() ? step.find("timeline") : step.end();
  if (found == step.end() || !found->is_object()) {
    return "-";
  }
  double sum = 0;
  for (const auto* part :
       {"preparing_seconds", "waiting_seconds", "acting_seconds", "observing_seconds"}) {
    sum += found->value(part, 0.0);
  }
  return fine_length_text(std::chrono::duration<double>(sum));
}

void print_run_steps(const CliContext& context, const json& run) {
  Table table({{"stage", Table::Align::kRight},
               {"step"},
               {"node"},
               {"state"},
               {"since"},
               {"took", Table::Align::kRight},
               {"what", Table::Align::kWrap}});
  std::size_t number = 0;
  std::size_t hidden = 0;
  for (const auto& stage : list_of(run, "stages")) {
    if (is_conditional_and_unused(stage)) {
      ++hidden;
      continue;
    }
    ++number;
    for (const auto& step : list_of(stage, "steps")) {
      const auto state = text_of(step, "state");
      table.add({std::to_string(number), text_of(step, "kind"), text_of(step, "node"), state,
                 time_of(step, "since"), state == "pending" ? "-" : took_text(step),
                 step_text(step)});
    }
  }
  context.print(table);
  if (hidden > 0) {
    context.out << fmt::format("{} hidden: only for a node that leads when its turn comes\n",
                               counted(static_cast<std::int64_t>(hidden), "conditional stage"));
  }
}

void print_attempts(const CliContext& context, const json& run) {
  for (const auto& stage : list_of(run, "stages")) {
    for (const auto& step : list_of(stage, "steps")) {
      for (const auto& outcome : list_of(step, "outcomes")) {
        context.out << fmt::format("{}: {}\n", text_of(step, "id"), attempt_text(outcome));
      }
    }
  }
}

bool has_open_alert(const json& run, const std::string& step) {
  return std::ranges::any_of(list_of(run, "alerts"), [&step](const json& alert) {
    return alert.is_object() && text_of(alert, "step") == step &&
           text_of(alert, "cleared_at").empty();
  });
}

/// What the waiting steps wait for, or did when the run ended: value, limit, since when.
void print_closed_gates(const CliContext& context, const json& run) {
  const bool ended = !text_of(run, "finished_at").empty();
  Table table({{ended ? "waited for" : "waits for"},
               {"node"},
               {"now", Table::Align::kWrap},
               {"limit", Table::Align::kWrap},
               {"since"},
               {"why", Table::Align::kWrap}});
  std::string alert_at;  // the first
  std::string node;
  for (const auto& stage : list_of(run, "stages")) {
    for (const auto& step : list_of(stage, "steps")) {
      if (text_of(step, "state") != "waiting") {
        continue;
      }
      for (const auto& gate : list_of(step, "waiting_for")) {
        const auto at = text_of(gate, "alert_at");
        if (!ended && !at.empty() && (alert_at.empty() || at < alert_at) &&
            !has_open_alert(run, text_of(step, "id"))) {
          alert_at = at;
          node = text_of(step, "node");
        }
        table.add({text_of(gate, "gate"), text_of(gate, "node"), text_of(gate, "value"),
                   text_of(gate, "limit"), time_of(gate, "since"), text_of(gate, "reason")});
      }
    }
  }
  if (!table.empty()) {
    context.print(table);
  }
  if (!alert_at.empty()) {
    context.out << fmt::format("an alert fires at {} if it is still closed",
                               to_the_second(alert_at));
    context.out << (node.empty() ? "\n"
                                 : fmt::format("; to leave {0} out: verger run skip {1} {0}\n",
                                               node, short_id(text_of(run, "id"))));
  }
}

/// Gates that were open only since they could not be looked at.
void print_not_seen(const CliContext& context, const json& run) {
  for (const auto& stage : list_of(run, "stages")) {
    for (const auto& step : list_of(stage, "steps")) {
      for (const auto& gate : list_of(step, "not_seen")) {
        context.out << fmt::format("not seen before {}: {}: {} (gate {})\n", text_of(step, "id"),
                                   text_of(gate, "node"), text_of(gate, "reason"),
                                   text_of(gate, "gate"));
      }
    }
  }
}

/// A node whose outcome cannot be seen holds its run up until it is back, or left out. Where it is
/// being undone that says so, and no request shortens it.
void print_ways_out(const CliContext& context, const json& run) {
  std::map<std::string, bool> nodes;  ///< whether a stage of theirs is done on all nodes or on none
  for (const auto& stage : list_of(run, "stages")) {
    for (const auto& step : list_of(stage, "steps")) {
      if (text_of(step, "state") == "unknown" && !text_of(step, "node").empty()) {
        nodes[text_of(step, "node")] |= is_true(stage, "atomic");
      }
    }
  }
  for (const auto& node : list_of(run, "undo")) {
    nodes.erase(text_of(node, "node"));
  }
  const auto id = short_id(text_of(run, "id"));
  for (const auto& [node, in_atomic] : nodes) {
    context.out << fmt::format("{} holds the run up until it can be seen; ", node)
                << (in_atomic ? fmt::format(
                                    "to undo what is done on all nodes: verger run cancel {}\n", id)
                              : fmt::format("to leave it out: verger run skip {} {}\n", id, node));
  }
}

std::string part_text(const json& timeline, const char* name) {
  return fine_length_text(std::chrono::duration<double>(timeline.value(name, 0.0)));
}

/// Where the time of each step went.
void print_step_times(const CliContext& context, const json& run) {
  Table table({{"step"},
               {"node"},
               {"preparing", Table::Align::kRight},
               {"waiting", Table::Align::kRight},
               {"acting", Table::Align::kRight},
               {"observing", Table::Align::kRight}});
  for (const auto& stage : list_of(run, "stages")) {
    for (const auto& step : list_of(stage, "steps")) {
      const auto timeline = object_of(step, "timeline");
      if (!timeline.empty() && !is_conditional_and_unused(stage)) {
        table.add({text_of(step, "kind"), text_of(step, "node"),
                   part_text(timeline, "preparing_seconds"), part_text(timeline, "waiting_seconds"),
                   part_text(timeline, "acting_seconds"),
                   part_text(timeline, "observing_seconds")});
      }
    }
  }
  if (!table.empty()) {
    context.print(table);
  }
}

}  // namespace

std::string short_id(const std::string& id) { return id.substr(0, 12); }

bool is_conditional_and_unused(const json& stage) {
  const auto steps = list_of(stage, "steps");
  return !text_of(stage, "if_put_off").empty() && std::ranges::all_of(steps, [](const auto& step) {
    return text_of(step, "state") == "pending";
  });
}

std::string progress_text(const json& step) {
  const auto progress = step.is_object() ? step.value("progress", json()) : json();
  if (!progress.is_object()) {
    return "";
  }
  auto text = text_of(progress, "phase");
  const auto unit = text_of(progress, "unit");
  const bool in_bytes = unit == "bytes";
  if (const auto total = number_of(progress, "total"); total > 0) {
    const auto done = std::clamp<std::int64_t>(number_of(progress, "done"), 0, total);
    const auto share = static_cast<double>(done) * 100 / static_cast<double>(total);
    append(text, in_bytes
                     ? fmt::format("{} of {} ({:.0f} %)", human_bytes(done), human_bytes(total),
                                   std::floor(share))
                     : fmt::format("{} of {} {} ({:.0f} %)", done, total, unit, std::floor(share)));
  }
  const bool is_time = unit == "seconds";  // its rate is the clock's
  if (const auto rate = progress.find("rate");
      !is_time && rate != progress.end() && rate->is_number()) {
    const auto hourly = rate->get<double>();
    append(text, in_bytes ? human_bytes(static_cast<std::int64_t>(hourly / 3'600)) + "/s"
                          : fmt::format("{:.0f} {}/h", hourly, unit));
  }
  if (const auto saved = number_of(progress, "bytes_saved"); saved > 0) {
    append(text, human_bytes(saved) + " freed");
  }
  return text;
}

std::string step_text(const json& step) {
  auto text = text_of(step, "reason");
  append(text, progress_text(step));
  if (const auto why = text_of(object_of(step, "result"), "not_needed"); !why.empty()) {
    append(text, "not needed: " + why);
  } else if (const auto result = object_of(step, "result"); is_true(result, "already")) {
    append(text, fmt::format("not needed: already at point {}",
                             number_of(object_of(result, "point"), "number")));
  }
  return text;
}

std::string intent_text(const std::string& intent, const json& run, const std::string& node,
                        bool force) {
  std::string done;
  const auto undo = list_of(run, "undo");
  if (intent == "skip" && std::ranges::any_of(undo, [&node](const auto& each) {
        return text_of(each, "node") == node;
      })) {
    done = fmt::format("{} is being undone, which leaving it out does not shorten", node);
  } else if (intent == "skip") {
    done = fmt::format("{} is left out{}", node,
                       force ? "; what may still run there holds nothing back" : "");
  } else if (intent == "throttle") {
    const auto throttle = object_of(run, "throttle");
    const auto limit = number_of(throttle, "bytes_per_second");
    done = fmt::format("its jobs work {} % of the time from now on, {}",
                       number_of(throttle, "percent"),
                       limit > 0 ? "up to " + human_bytes(limit) + "/s" : "with no limit in bytes");
  } else {
    return fmt::format("run {}: {}", short_id(text_of(run, "id")), text_of(run, "state"));
  }
  return fmt::format("run {0}: {1}; follow it with: verger run watch {0}",
                     short_id(text_of(run, "id")), done);
}

std::string attempt_text(const json& outcome) {
  const auto how = text_of(outcome, "outcome");
  auto reason = text_of(outcome, "reason");
  if (reason.starts_with(how + ": ")) {
    reason = reason.substr(how.size() + 2);
  }
  auto words = how;
  std::ranges::replace(words, '-', ' ');
  std::ranges::replace(words, '_', ' ');
  return fmt::format("attempt {} {} {}{}", number_of(outcome, "attempt"), words,
                     time_of(outcome, "at"), reason.empty() || reason == how ? "" : ": " + reason);
}

std::string expected_end_text(const json& run) {
  const auto end = object_of(run, "expected_end");
  const auto hours = object_of(run, "hours");
  const auto until = text_of(hours, "until");
  std::string text;
  if (const auto opens = text_of(end, "resumes_at"); !opens.empty()) {
    text = fmt::format("resumes {}, then ", to_the_second(opens));
    const auto left = object_of(end, "seconds_left");
    text += "about " + range_text(seconds(number_of(left, "min")), seconds(number_of(left, "max")));
    text += fmt::format(": expected to end between {} and {}", time_of(end, "earliest"),
                        time_of(end, "latest"));
  } else if (end.value("overdue", false)) {
    text = fmt::format("overdue; earliest end {}", time_of(end, "earliest"));
  } else if (!end.empty()) {
    text = text_of(end, "earliest") == text_of(end, "latest")
               ? fmt::format("expected to end at {}", time_of(end, "earliest"))
               : fmt::format("expected to end between {} and {}", time_of(end, "earliest"),
                             time_of(end, "latest"));
  }
  if (!until.empty() && hours.value("open", true)) {
    text += (text.empty() ? "" : "; ") + ("window closes at " + to_the_second(until));
  } else if (!until.empty() && text.empty()) {
    text = "window opens at " + to_the_second(until);
  }
  return text;
}

std::string alert_text(const json& alert) {
  if (alert.is_string()) {
    return alert.get<std::string>();
  }
  auto text = text_of(alert, "reason");
  if (const auto at = text_of(alert, "at"); !at.empty()) {
    text = to_the_second(at) + " " + text;
  }
  const auto cleared = text_of(alert, "cleared_at");
  return cleared.empty() ? text : fmt::format("{} (cleared at {})", text, to_the_second(cleared));
}

/// Each node at which something was undone, and what is left to do by hand.
void print_undo(const CliContext& context, const json& run) {
  for (const auto& node : list_of(run, "undo")) {
    const auto state = text_of(node, "state");
    const auto name = text_of(node, "node");
    const auto words = state == "undone"       ? "undone, seen at " + time_of(node, "at")
                       : state == "not-undone" ? "NOT undone: " + text_of(node, "reason")
                                               : std::string("undo is under way");
    context.out << fmt::format("undo: {}: {}\n", name.empty() ? "cluster" : name, words);
    for (const auto& command : list_of(node, "commands")) {
      context.out << "  run: " << command.get<std::string>() << '\n';
    }
  }
}

void print_run(const CliContext& context, const json& run) {
  const auto reason = text_of(run, "reason");
  const auto ended = time_of(run, "finished_at");
  context.out << fmt::format("run {}  {}{}\n", text_of(run, "id"), text_of(run, "state"),
                             reason.empty() ? "" : ": " + reason);
  context.out << fmt::format("cluster {}  plan {}\n", text_of(run, "cluster"),
                             text_of(run, "plan"));
  context.out << fmt::format("begun {} by {}{}\n", time_of(run, "started_at"),
                             text_of(run, "started_by"), ended == "-" ? "" : "  ended " + ended);
  if (run.value("ignores_hours", false)) {
    context.out << "windows are ignored for this run\n";
  }
  if (const auto notice = text_of(run, "notice"); !notice.empty()) {
    context.out << notice << '\n';
  }
  print_run_steps(context, run);
  print_attempts(context, run);
  if (const auto end = expected_end_text(run); !end.empty()) {
    context.out << end << '\n';
  }
  print_closed_gates(context, run);
  print_not_seen(context, run);
  print_ways_out(context, run);
  print_undo(context, run);
  for (const auto& alert : list_of(run, "alerts")) {
    context.out << "alert: " << alert_text(alert) << '\n';
  }
  if (const auto report = run.value("report", json()); report.is_object()) {
    print_step_times(context, run);
    print_report(context, run);
  }
}

}  // namespace verger::cli
