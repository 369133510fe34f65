#include "controller/scheduler/windows.h"

#include <fmt/format.h>

namespace verger::controller {
namespace {

using std::chrono::days;
using std::chrono::minutes;

std::string clock_text(minutes time) {
  return fmt::format("{:02}:{:02}", time.count() / 60, time.count() % 60);
}

std::string local_text(LocalSeconds local) {
  const auto day = std::chrono::floor<days>(local);
  const std::chrono::year_month_day date(day);
  return fmt::format("{:04}-{:02}-{:02} {}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock_text(std::chrono::floor<minutes>(local - day)));
}

/// "Mon-Fri", "Sat, Sun", "every day"
std::string days_text(std::bitset<7> set) {
  if (set.all()) {
    return "every day";
  }
  std::string out;
  // The week of people begins on Monday.
  for (std::size_t i = 0; i < 7;) {
    std::size_t run = 0;
    while (i + run < 7 && set.test((i + run + 1) % 7)) {
      ++run;
    }
    if (run == 0) {
      ++i;
      continue;
    }
    out += out.empty() ? "" : ", ";
    out += kDayNames[(i + 1) % 7];
    if (run > 1) {
      out += fmt::format("{}{}", run == 2 ? ", " : "-", kDayNames[(i + run) % 7]);
    }
    i += run;
  }
  return out;
}

std::string which(const std::vector<Window>& windows, Instant now) {
  for (const auto& window : windows) {
    IntervalSet set;
    window.add_to(set, {now - days(1), now + days(1)});
    if (set.contains(now)) {
      return window.describe();
    }
  }
  return "";
}

}  // namespace

void Window::add_to(IntervalSet& set, Interval range) const {
  IntervalSet own;
  if (!weekly) {
    zone.add_instants(first, last, own);
  } else {
    const auto end = std::chrono::floor<days>(zone.to_local(range.to)) + days(1);
    for (auto day = std::chrono::floor<days>(zone.to_local(range.from)) - days(2); day <= end;
         day += days(1)) {
      if (weekdays.test(std::chrono::weekday(day).c_encoding())) {
        zone.add_instants(day + from, day + to + (to <= from ? minutes(1'440) : minutes(0)), own);
      }
    }
  }
  for (const auto& each : own.clipped_to(range).intervals()) {
    set.add(each);
  }
}

std::string Window::describe() const {
  const auto text =
      weekly ? fmt::format("{} {}-{} {}", days_text(weekdays), clock_text(from), clock_text(to),
                           zone.name())
             : fmt::format("{} to {} {}", local_text(first), local_text(last), zone.name());
  return name.empty() ? text : fmt::format("\"{}\" ({})", name, text);
}

IntervalSet openings(const WindowRules& rules, Interval range) {
  IntervalSet allowed;
  if (rules.allow.empty()) {
    allowed.add(range);
  }
  for (const auto& window : rules.allow) {
    window.add_to(allowed, range);
  }
  IntervalSet denied;
  for (const auto& window : rules.deny) {
    window.add_to(denied, range);
  }
  return allowed.minus(denied);
}

Opening opening_at(const WindowRules& rules, Instant now) {
  Opening out;
  for (const int horizon : {9, 60, 400}) {
    const Interval range{now - days(horizon), now + days(horizon)};
    const auto open = openings(rules, range);
    const auto present = open.find(now);
    out.open = present.has_value();
    out.until.reset();
    if (present) {
      out.since = present->from;
      if (present->to < range.to) {
        out.until = present->to;
      }
    } else {
      out.since = range.from;
      for (const auto& each : open.intervals()) {
        if (each.to <= now) {
          out.since = each.to;
        }
      }
      if (const auto next = open.next(now)) {
        out.until = next->from;
      }
    }
    if (out.until) {
      break;
    }
  }
  if (!out.open) {
    const auto deny = which(rules.deny, now);
    out.reason = deny.empty() ? "no allow window is open" : "deny window " + deny;
  }
  return out;
}

}  // namespace verger::controller
