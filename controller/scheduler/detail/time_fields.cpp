#include "controller/scheduler/detail/time_fields.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <string>

namespace verger::controller::detail {
namespace {

using std::chrono::minutes;

std::optional<Zone> read_zone(YamlFields& fields) {
  std::string name;
  if (!fields.text("zone", name)) {
    fields.problem(fmt::format("{}zone is missing, such as Europe/Berlin; UTC has to be said too",
                               fields.prefix()));
    return std::nullopt;
  }
  const auto zone = Zone::find(name);
  if (!zone) {
    fields.problem(fields.get("zone"), zone.error().message);
    return std::nullopt;
  }
  return *zone;
}

std::optional<minutes> read_clock(YamlFields& fields, const char* key, const std::string& text) {
  int hour = -1;
  int minute = -1;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, hour);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == ':') {
    const auto second = std::from_chars(first.ptr + 1, end, minute);
    if (second.ec == std::errc() && second.ptr == end && second.ptr - first.ptr == 3 && hour >= 0 &&
        minute >= 0 && minute < 60 && (hour < 24 || (hour == 24 && minute == 0))) {
      return std::chrono::hours(hour) + minutes(minute);
    }
  }
  fields.problem(fields.get(key), fmt::format("{}{} is \"{}\"; it takes a time as \"22:00\"",
                                              fields.prefix(), key, text));
  return std::nullopt;
}

void read_weekly(YamlFields& fields, const std::vector<std::string>& names, const std::string& from,
                 const std::string& to, Window& out) {
  static const std::vector<std::string> kNames{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
  if (names.empty()) {
    out.weekdays.set();
  }
  for (const auto& name : names) {
    const auto dash = name.find('-');
    const auto first = std::ranges::find(kNames, name.substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : std::ranges::find(kNames, name.substr(dash + 1));
    if (first == kNames.end() || last == kNames.end()) {
      fields.problem(fields.get("days"),
                     fmt::format("{}days has \"{}\"; it takes mon, tue, wed, thu, fri, sat, sun, "
                                 "or a range as mon-fri",
                                 fields.prefix(), name));
      continue;
    }
    for (auto day = static_cast<std::size_t>(first - kNames.begin());; day = (day + 1) % 7) {
      out.weekdays.set(day);
      if (day == static_cast<std::size_t>(last - kNames.begin())) {
        break;
      }
    }
  }
  const auto begin = read_clock(fields, "from", from);
  const auto end = read_clock(fields, "to", to);
  if (begin && end) {
    out.from = *begin;
    out.to = *end;
    if (out.from == minutes(1'440)) {
      fields.problem(fields.get("from"),
                     fmt::format("{}from is 24:00; say 00:00 of the next day", fields.prefix()));
    }
  }
}

std::optional<LocalSeconds> read_date(YamlFields& fields, const char* key,
                                      const std::string& text) {
  int values[5] = {0, 0, 0, 0, 0};
  const char* at = text.data();
  const char* const end = at + text.size();
  constexpr std::string_view kSeparators = "--T:";
  std::size_t count = 0;
  bool good = true;
  for (; count < 5 && good; ++count) {
    const auto [next, error] = std::from_chars(at, end, values[count]);
    good = error == std::errc() && values[count] >= 0;
    at = next;
    if (at == end) {
      ++count;
      break;
    }
    good = good && count < 4 && *at == kSeparators[count];
    ++at;
  }
  const std::chrono::year_month_day date{std::chrono::year(values[0]),
                                         std::chrono::month(static_cast<unsigned>(values[1])),
                                         std::chrono::day(static_cast<unsigned>(values[2]))};
  if (!good || at != end || (count != 3 && count != 5) || !date.ok() || values[0] < 1970 ||
      values[0] > 9999 || values[1] > 12 || values[2] > 31 || values[3] > 23 || values[4] > 59) {
    fields.problem(fields.get(key),
                   fmt::format("{}{} is \"{}\"; it takes a time as \"22:00\" every week, or once "
                               "as \"2024-12-24T18:00\" or \"2024-12-24\"",
                               fields.prefix(), key, text));
    return std::nullopt;
  }
  return LocalSeconds(std::chrono::local_days(date)) + std::chrono::hours(values[3]) +
         minutes(values[4]);
}

void read_dated(YamlFields& fields, const std::vector<std::string>& names, const std::string& from,
                const std::string& to, Window& out) {
  if (!names.empty()) {
    fields.problem(fields.get("days"),
                   fmt::format("{}days goes with times of day, not with dates", fields.prefix()));
  }
  const auto first = read_date(fields, "from", from);
  const auto last = read_date(fields, "to", to);
  if (first && last && *last <= *first) {
    fields.problem(fields.get("to"), fmt::format("{}to is not after from", fields.prefix()));
  }
  out.first = first.value_or(LocalSeconds());
  out.last = last.value_or(LocalSeconds());
}

/// nullopt: a problem was reported.
std::optional<Window> read_window(YamlFields& fields) {
  const auto before = fields.problems().size();
  Window out;
  fields.text("name", out.name);
  std::vector<std::string> day_names;
  fields.texts("days", day_names);
  std::string from;
  std::string to;
  const bool has_from = fields.text("from", from);
  const bool has_to = fields.text("to", to);
  if (const auto zone = read_zone(fields)) {
    out.zone = *zone;
  }
  fields.refuse_unknown_keys();
  if (!has_from || !has_to) {
    fields.problem(
        fmt::format("{}from and to are needed, as 22:00 or 2024-12-24T18:00", fields.prefix()));
    return std::nullopt;
  }
  out.weekly = from.find('T') == std::string::npos && from.size() <= 5;
  if (out.weekly) {
    read_weekly(fields, day_names, from, to, out);
  } else {
    read_dated(fields, day_names, from, to, out);
  }
  return fields.problems().size() == before ? std::optional(std::move(out)) : std::nullopt;
}

void read_window_list(YamlFields& parent, const std::string& key, std::vector<Window>& into) {
  const auto list = parent.get(key);
  if (!list.IsDefined()) {
    return;
  }
  if (!list.IsSequence()) {
    parent.problem(list, fmt::format("windows.{} must be a list", key));
    return;
  }
  for (const YAML::Node& each : list) {
    YamlFields fields(each, "windows." + key, parent.problems());
    if (auto window = read_window(fields)) {
      into.push_back(*std::move(window));
    }
  }
}

}  // namespace

void read_schedules(YamlFields& policy, std::vector<CronSchedule>& into) {
  const auto list = policy.get("schedule");
  if (!list.IsDefined()) {
    return;  // only by hand
  }
  if (!list.IsSequence() || list.size() == 0) {
    policy.problem(list, "schedule must be a list of {cron, zone}");
    return;
  }
  for (const YAML::Node& each : list) {
    YamlFields fields(each, "schedule", policy.problems());
    std::string cron;
    const bool given = fields.text("cron", cron);
    const auto zone = read_zone(fields);
    fields.refuse_unknown_keys();
    if (!given) {
      fields.problem(each, "schedule.cron is missing, such as \"0 22 * * sat\"");
      continue;
    }
    auto schedule = CronSchedule::parse(cron, zone.value_or(Zone()));
    if (!schedule) {
      fields.problem(each, schedule.error().message);
    } else {
      into.push_back(*std::move(schedule));
    }
  }
}

void read_windows(YamlFields& policy, WindowRules& into) {
  const auto windows = policy.get("windows");
  if (!windows.IsDefined()) {
    return;
  }
  YamlFields fields(windows, "windows", policy.problems());
  read_window_list(fields, "allow", into.allow);
  read_window_list(fields, "deny", into.deny);
  fields.refuse_unknown_keys();
}

}  // namespace verger::controller::detail
