#include "controller/scheduler/cron.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>
#include <vector>

#include "engine/base/number_from_text.h"

namespace verger::controller {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::local_days;
using std::chrono::minutes;

constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kDays{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kShort{
    {{"@hourly", "0 * * * *"},
     {"@daily", "0 0 * * *"},
     {"@weekly", "0 0 * * 0"},
     {"@monthly", "0 0 1 * *"},
     {"@yearly", "0 0 1 1 *"}}};

struct Field {
  std::string_view name;
  int low;
  int high;
  std::span<const std::string_view> names;  ///< the first stands for `low`
};

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (;;) {
    const auto end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return out;
    }
    text.remove_prefix(end + 1);
  }
}

Error wrong(const Field& field, std::string_view text, std::string_view why) {
  return Error{Errc::kInvalidArgument,
               fmt::format("cron field {} is \"{}\": {}", field.name, text, why)};
}

Result<int> number(const Field& field, std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (const auto named = std::ranges::find(field.names, lower); named != field.names.end()) {
    return static_cast<int>(named - field.names.begin()) + field.low;
  }
  const auto value = number_from_text<int>(text);
  if (!value || *value < field.low || *value > field.high) {
    return wrong(field, text, fmt::format("it takes {} to {}", field.low, field.high));
  }
  return *value;
}

template <std::size_t N>
Result<void> read_field(const Field& field, std::string_view text, std::bitset<N>& into) {
  for (const auto part : split(text, ',')) {
    const auto slash = part.find('/');
    const auto range = part.substr(0, slash);
    int step = 1;
    if (slash != std::string_view::npos) {
      step = number_from_text<int>(part.substr(slash + 1)).value_or(0);
      if (step < 1) {
        return wrong(field, part, "the step must be 1 or more");
      }
    }
    int low = field.low;
    int high = field.high;
    if (range != "*") {
      const auto dash = range.find('-');
      VERGER_TRY(low, number(field, range.substr(0, dash)));
      high = low;
      if (dash != std::string_view::npos) {
        VERGER_TRY(high, number(field, range.substr(dash + 1)));
      } else if (slash != std::string_view::npos) {
        high = field.high;
      }
      if (high < low) {
        return wrong(field, part, "the range runs backwards");
      }
    }
    for (int value = low; value <= high; value += step) {
      into.set(static_cast<std::size_t>(value));
    }
  }
  return {};
}

}  // namespace

Result<CronSchedule> CronSchedule::parse(std::string_view text, Zone zone) {
  CronSchedule out;
  out.text_ = std::string(text);
  out.zone_ = std::move(zone);
  const auto* named =
      std::ranges::find(kShort, text, &std::pair<std::string_view, std::string_view>::first);
  std::vector<std::string_view> fields;
  for (const auto part : split(named == kShort.end() ? text : named->second, ' ')) {
    if (!part.empty()) {
      fields.push_back(part);
    }
  }
  if (fields.size() != 5) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("cron \"{}\" has {} fields; it takes five: minute hour day month "
                             "weekday",
                             text, fields.size())};
  }
  VERGER_RETURN_IF_ERROR(read_field({"minute", 0, 59, {}}, fields[0], out.minutes_));
  VERGER_RETURN_IF_ERROR(read_field({"hour", 0, 23, {}}, fields[1], out.hours_));
  VERGER_RETURN_IF_ERROR(read_field({"day", 1, 31, {}}, fields[2], out.days_));
  VERGER_RETURN_IF_ERROR(read_field({"month", 1, 12, kMonths}, fields[3], out.months_));
  VERGER_RETURN_IF_ERROR(read_field({"weekday", 0, 7, kDays}, fields[4], out.weekdays_));
  if (out.weekdays_.test(7)) {
    out.weekdays_.set(0);
  }
  out.any_day_ = fields[2].starts_with('*');
  out.any_weekday_ = fields[4].starts_with('*');
  if (!out.next_after(Instant(days(19'000)))) {
    return Error{Errc::kInvalidArgument, fmt::format("cron \"{}\" never comes", text)};
  }
  return out;
}

bool CronSchedule::matches(local_days day) const {
  const std::chrono::year_month_day date(day);
  if (!months_.test(static_cast<unsigned>(date.month()))) {
    return false;
  }
  const bool by_day = days_.test(static_cast<unsigned>(date.day()));
  const bool by_weekday = weekdays_.test(std::chrono::weekday(day).c_encoding());
  return any_day_ || any_weekday_ ? by_day && by_weekday : by_day || by_weekday;
}

std::optional<Instant> CronSchedule::next_after(Instant instant) const {
  // A due time in a gap moves to the gap's end, at most some hours: begin a day early.
  auto day = std::chrono::floor<days>(zone_.to_local(instant)) - days(1);
  const auto last = day + days(9 * 366);
  for (; day < last; day += days(1)) {
    if (!matches(day)) {
      continue;
    }
    for (std::size_t hour = 0; hour < hours_.size(); ++hour) {
      for (std::size_t minute = 0; hours_.test(hour) && minute < minutes_.size(); ++minute) {
        if (!minutes_.test(minute)) {
          continue;
        }
        const auto due = zone_.due_at(day + hours(hour) + minutes(minute));
        if (due > instant) {
          return due;
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace verger::controller
