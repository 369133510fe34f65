#include "tests/simulation/decade/wall_calendar.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

namespace verger::sim {
namespace {

constexpr int kMinutesOfDay = 1'440;
constexpr std::array<std::string_view, 12> kZones = {"UTC",
                                                     "Europe/Berlin",
                                                     "America/New_York",
                                                     "Australia/Lord_Howe",
                                                     "Asia/Kolkata",
                                                     "America/Santiago",
                                                     "Africa/Casablanca",
                                                     "Europe/Dublin",
                                                     "Pacific/Auckland",
                                                     "America/St_Johns",
                                                     "Africa/Cairo",
                                                     "Asia/Kathmandu"};

Ticks ticks_at(int minute) { return ticks_of_unix(kDecadeBegins + std::int64_t{minute} * 60); }

std::string any_zone(Random& random) { return std::string(kZones[random.below(kZones.size())]); }

unsigned any_weekdays(Random& random) {
  return random.below(2) == 0 ? 0x7fU : 1U + static_cast<unsigned>(random.below(0x7f));
}

WrittenSchedule any_schedule(Random& random) {
  WrittenSchedule out;
  out.zone = any_zone(random);
  out.weekdays = any_weekdays(random);
  // Mostly at the hours in which clocks change.
  const auto hour = [&] { return static_cast<int>(random.below(random.below(2) == 0 ? 4 : 24)); };
  out.hours.push_back(hour());
  out.minutes.push_back(static_cast<int>(random.below(60)));
  if (random.below(3) == 0) {
    out.hours.push_back(hour());
    out.minutes.push_back(static_cast<int>(random.below(60)));
  }
  return out;
}

DenyWindow any_window(Random& random) {
  const auto quarter = [&] { return static_cast<int>(random.below(96)) * 15; };
  DenyWindow out{.zone = any_zone(random), .from = quarter(), .to = quarter()};
  out.days = any_weekdays(random);
  return out;
}

}  // namespace

bool WrittenSchedule::matches(const WallTime::Reading& wall) const {
  return ((weekdays >> static_cast<unsigned>(wall.weekday)) & 1U) != 0 &&
         std::ranges::find(hours, wall.minute / 60) != hours.end() &&
         std::ranges::find(minutes, wall.minute % 60) != minutes.end();
}

std::string WrittenSchedule::cron() const {
  std::vector<int> days;
  for (int day = 0; day < 7; ++day) {
    if (((weekdays >> static_cast<unsigned>(day)) & 1U) != 0) {
      days.push_back(day);
    }
  }
  return fmt::format("{} {} * * {}", fmt::join(minutes, ","), fmt::join(hours, ","),
                     days.size() == 7 ? "*" : fmt::format("{}", fmt::join(days, ",")));
}

std::string WrittenPolicy::yaml() const {
  std::string out =
      fmt::format("name: decade\nclusters: [orders]\ncatch_up: {}\nschedule:\n", catch_up);
  for (const auto& schedule : schedules) {
    out += fmt::format("  - {{cron: '{}', zone: {}}}\n", schedule.cron(), schedule.zone);
  }
  out += "windows:\n";
  for (const auto& [key, windows] : {std::pair{"allow", &allow}, std::pair{"deny", &deny}}) {
    out += fmt::format("  {}: [", key);
    for (const auto& window : *windows) {
      out += fmt::format("{}{}", &window == windows->data() ? "" : ", ", window.yaml());
    }
    out += "]\n";
  }
  return out;
}

WrittenPolicy any_policy(Random& random) {
  WrittenPolicy out;
  for (auto left = 1 + random.below(2); left > 0; --left) {
    out.schedules.push_back(any_schedule(random));
  }
  for (auto left = random.below(3); left > 0; --left) {
    out.allow.push_back(any_window(random));
  }
  for (auto left = random.below(3); left > 0; --left) {
    out.deny.push_back(any_window(random));
  }
  constexpr std::array<std::string_view, 3> kRules = {"run", "skip", "run-if-in-window"};
  out.catch_up = kRules[random.below(kRules.size())];
  return out;
}

WallCalendar::WallCalendar(const WrittenPolicy& policy) {
  const auto holds = [](const std::vector<DenyWindow>& windows, Ticks time) {
    return std::ranges::any_of(windows, [time](const auto& each) { return each.holds(time); });
  };
  open.reserve(kDecadeMinutes);
  for (int minute = 0; minute < kDecadeMinutes; ++minute) {
    const auto time = ticks_at(minute);
    open.push_back((policy.allow.empty() || holds(policy.allow, time)) &&
                   !holds(policy.deny, time));
  }
  for (const auto& schedule : policy.schedules) {
    const auto& zone = WallTime::of(schedule.zone);
    const auto shown = [](const WallTime::Reading& wall) {
      return wall.day * kMinutesOfDay + wall.minute;
    };
    // The latest time the clock has shown: what it shows again is not due again, and what it leaves
    // out is due with the first minute behind.
    auto latest = shown(zone.at(ticks_at(-1)));
    for (int minute = 0; minute < kDecadeMinutes; ++minute) {
      bool is_due = false;
      for (const auto now = shown(zone.at(ticks_at(minute))); latest < now;) {
        ++latest;
        is_due |= schedule.matches({.day = latest / kMinutesOfDay,
                                    .weekday = static_cast<int>((latest / kMinutesOfDay + 4) % 7),
                                    .minute = static_cast<int>(latest % kMinutesOfDay)});
      }
      if (is_due) {
        due.push_back(minute);
      }
    }
  }
  std::ranges::sort(due);
  const auto repeated = std::ranges::unique(due);
  due.erase(repeated.begin(), repeated.end());
}

int WallCalendar::first_open(int minute) const {
  while (minute < kDecadeMinutes && !open[static_cast<std::size_t>(minute)]) {
    ++minute;
  }
  return minute;
}

}  // namespace verger::sim
