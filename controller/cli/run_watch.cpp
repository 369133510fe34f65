#include "controller/cli/run_watch.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/interrupt_note.h"
#include "controller/cli/json_text.h"
#include "controller/cli/operations/reports.h"
#include "controller/cli/run_text.h"
#include "controller/cli/times.h"
#include "engine/base/clock.h"

namespace verger::cli {
namespace {

using nlohmann::json;

/// How long a step's details may change before they are printed again.
constexpr std::chrono::seconds kQuiet{5};
/// Between two lines on the expected end where a step has changed, and where nothing but progress
/// has.
constexpr std::chrono::seconds kEndAfterChange{10};
constexpr std::chrono::seconds kEndAgain{60};
/// A controller that restarts on another machine is back within this time.
constexpr std::chrono::seconds kControllerAway{120};

/// No answer at all, or one that says "not now", as while one of a pair takes over.
bool is_away(const CallFailure& failure) {
  const auto code = text_of(failure.problem, "code");
  return failure.problem.is_null() || code == "unavailable" || code == "standby";
}

bool has_ended(const std::string& state) {
  return state == "done" || state == "done-with-differences" || state == "failed" ||
         state == "cancelled";
}

/// A line, with its time, per step that has changed since the last call.
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
      out_ << "  alert: " << alert_text(alerts[alerts_]) << '\n';
    }
    const auto state = text_of(run, "state");
    const auto reason = text_of(run, "reason");
    // Why a run waits is on the line of the step that waits.
    const bool waits = state == "waiting" || state == "running";
    const auto shown = waits ? "running" : state;
    if (shown != run_state_) {
      run_state_ = shown;
      changed_ = true;
      const auto ended = text_of(run, "finished_at");
      out_ << fmt::format("{}  run {}: {}{}\n", ended.empty() ? time_now() : to_the_second(ended),
                          short_id(text_of(run, "id")), shown,
                          reason.empty() || waits ? "" : ": " + reason);
    }
    print_expected_end(run, now);
    out_ << std::flush;
  }

 private:
  struct Seen {
    std::string state;
    std::string details;
    std::size_t attempts = 0;
    std::chrono::steady_clock::time_point at;
  };

  static std::string time_now() { return to_the_second(format_ticks(system_clock().now())); }

  void print_step(const json& step, std::chrono::steady_clock::time_point now) {
    const auto state = text_of(step, "state");
    auto& seen = seen_[text_of(step, "id")];
    const auto outcomes = list_of(step, "outcomes");
    for (; seen.attempts < outcomes.size(); ++seen.attempts) {
      out_ << fmt::format("  {}: {}\n", text_of(step, "id"), attempt_text(outcomes[seen.attempts]));
    }
    if (seen.state.empty() && state == "pending") {
      return;
    }
    const auto details = step_text(step);
    const bool changed = seen.state != state;
    const bool moved = details != seen.details && now - seen.at >= kQuiet;
    if (!changed && !moved) {
      return;
    }
    seen.state = state;
    seen.details = details;
    seen.at = now;
    changed_ = changed_ || changed;
    const auto since = text_of(step, "since");
    out_ << fmt::format(
        "{}  {:<16} {:<8} {}{}\n", changed && !since.empty() ? to_the_second(since) : time_now(),
        text_of(step, "kind"), text_of(step, "node"), state, details.empty() ? "" : "  " + details);
  }

  /// After each change of a step, and now and then while one works.
  void print_expected_end(const json& run, std::chrono::steady_clock::time_point now) {
    const auto text = expected_end_text(run);
    const bool due = end_.empty() || now - end_shown_ >= (changed_ ? kEndAfterChange : kEndAgain);
    if (text.empty() || text == end_ || !due) {
      return;
    }
    changed_ = false;
    end_ = text;
    end_shown_ = now;
    out_ << "  " << text << '\n';
  }

  std::ostream& out_;
  std::map<std::string, Seen> seen_;
  std::string run_state_;
  std::size_t alerts_ = 0;
  bool changed_ = false;
  std::string end_;
  std::chrono::steady_clock::time_point end_shown_;
};

}  // namespace

int exit_code_of(const json& run) {
  const auto state = text_of(run, "state");
  if (state == "done") {
    return kDone;
  }
  if (state == "failed" || state == "done-with-differences") {
    return kFailed;
  }
  return state == "cancelled" || state == "paused" ? kStopped : kStillWaiting;
}

int watch_run(const CliContext& context, const std::string& id, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  ChangePrinter changes(context.out);
  const InterruptNote note(
      fmt::format("\nverger: the run continues; cancel it with: verger run cancel {0}\n"
                  "verger: follow it again with: verger run watch {0}\n",
                  short_id(id)));
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
            "verger: {}\nverger: waiting until vergerd answers again; the run continues then\n",
            failure.message);
      }
      if (now >= end || now - *away_since >= kControllerAway) {
        context.err << fmt::format(
            "verger: vergerd still does not answer, so what became of run {} is not known; once "
            "it does: verger run watch {}\n",
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
      } else {
        print_report(context, *run);
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
