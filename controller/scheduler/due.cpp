#include "controller/scheduler/due.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::controller {
namespace {

using Action = DueDecision::Action;

struct DueTimes {
  std::optional<Instant> latest;  ///< not after now
  std::optional<Instant> next;    ///< after now
};

DueTimes due_times(const SchedulePolicy& policy, Instant after, Instant now) {
  DueTimes out;
  // Older ones are settled together with the latest.
  after = std::max(after, now - std::chrono::days(40));
  for (const auto& schedule : policy.schedules) {
    auto at = schedule.next_after(after);
    while (at && *at <= now) {
      out.latest = std::max(out.latest.value_or(*at), *at);
      at = schedule.next_after(*at);
    }
    if (at) {
      out.next = std::min(out.next.value_or(*at), *at);
    }
  }
  return out;
}

}  // namespace

DueDecision decide_due(const SchedulePolicy& policy, const WindowRules& rules,
                       Instant handled_up_to, Instant now, const DueBlock& block,
                       std::optional<Instant> event) {
  DueDecision out;
  auto times = due_times(policy, handled_up_to, now);
  const bool by_event = event && !policy.schedules.empty() && *event > handled_up_to &&
                        *event <= now && *event >= times.latest.value_or(*event);
  if (by_event) {
    times.latest = event;
  }
  out.wake = times.next;
  if (!times.latest) {
    return out;
  }
  out.due = *times.latest;
  const auto& zone = policy.schedules.front().zone();
  const auto opening = opening_at(rules, now);
  const auto drop = [&out](std::string reason) {
    out.action = Action::kDrop;
    out.reason = std::move(reason);
    return out;
  };
  const auto wait = [&](std::string reason) {
    out.action = Action::kWait;
    out.reason = std::move(reason);
    if (!opening.open) {
      out.wake = opening.until;
    }
    return out;
  };
  if (block.own_run_at_work) {
    return drop(block.reason);  // a cycle longer than its period is not started twice
  }
  const auto closed = fmt::format("{} until {}", opening.reason,
                                  opening.until ? zone.format(*opening.until) : "further notice");
  const bool late = now - out.due > kDueGrace && !block.noticed_in_time;
  switch (by_event ? CatchUp::kRun : policy.catch_up) {
    case CatchUp::kRun:
      if (!opening.open) {
        return wait(closed);
      }
      break;
    case CatchUp::kSkip:
      if (late || !opening.open) {
        return drop(opening.open
                        ? fmt::format("{} late{}{}; catch_up is skip", format_length(now - out.due),
                                      block.reason.empty() ? "" : ": ", block.reason)
                        : closed + "; catch_up is skip");
      }
      break;
    case CatchUp::kRunIfInWindow: {
      const Interval range{out.due - std::chrono::days(2), out.due + std::chrono::days(400)};
      const auto its = openings(rules, range).find(out.due);
      if (!its) {
        return drop("it was due outside its windows; catch_up is run-if-in-window");
      }
      if (now >= its->to) {
        return drop(fmt::format("its opening ended at {}{}{}; catch_up is run-if-in-window",
                                zone.format(its->to), block.reason.empty() ? "" : ": ",
                                block.reason));
      }
      break;
    }
  }
  if (!block.reason.empty()) {
    return wait(block.reason);
  }
  out.action = Action::kStart;
  return out;
}

namespace {

/// Of one schedule: every hour of a year.
constexpr int kMostDueTimes = 9'000;

/// When a run that is due at `due` starts; nullopt: it is dropped, or not within the year.
std::optional<Instant> start_of(const SchedulePolicy& policy, const IntervalSet& open,
                                Instant due) {
  if (open.contains(due)) {
    return due;
  }
  if (policy.catch_up != CatchUp::kRun) {
    return std::nullopt;
  }
  for (const auto& each : open.intervals()) {
    if (each.from >= due) {
      return each.from;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string why_too_late(const SchedulePolicy& policy, const WindowRules& rules,
                         const planner::Need& need, Instant now) {
  if (!need.deadline) {
    return {};
  }
  const auto deadline = to_instant(*need.deadline);
  const auto& zone = policy.schedules.empty() ? Zone() : policy.schedules.front().zone();
  if (deadline <= now) {
    return fmt::format("{} ended at {}, and no run has renewed it", need.ends,
                       zone.format(deadline));
  }
  const auto needed = need.needed_at ? std::max(now, to_instant(*need.needed_at)) : now;
  const auto last = deadline + std::chrono::days(366);
  const auto open = openings(rules, {now - std::chrono::days(2), last});
  std::optional<Instant> next;
  for (const auto& schedule : policy.schedules) {
    int looked_at = 0;
    for (auto due = schedule.next_after(needed);
         due && *due < last && (!next || *due < *next) && ++looked_at < kMostDueTimes;
         due = schedule.next_after(*due)) {
      if (const auto start = start_of(policy, open, *due)) {
        next = std::min(next.value_or(*start), *start);
        break;
      }
    }
  }
  if (next && *next < deadline) {
    return {};
  }
  return fmt::format("{} ends at {}, and {}", need.ends, zone.format(deadline),
                     next
                         ? fmt::format("the next run that needs it can start at {}, which is later",
                                       zone.format(*next))
                         : std::string("no run can start within a year after that"));
}

}  // namespace verger::controller
