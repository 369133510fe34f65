#include "controller/cli/times.h"

#include <charconv>
#include <chrono>
#include <ctime>
#include <fmt/format.h>
#include <optional>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "engine/base/clock.h"
#include "engine/base/unix_time.h"

namespace verger::cli {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kDay = 86'400;

std::optional<int> digits(std::string_view& rest, std::size_t count) {
  int value = 0;
  if (rest.size() < count ||
      std::from_chars(rest.data(), rest.data() + count, value).ptr != rest.data() + count ||
      rest.front() == '-') {
    return std::nullopt;
  }
  rest.remove_prefix(count);
  return value;
}

bool literal(std::string_view& rest, char c) {
  if (rest.empty() || rest.front() != c) {
    return false;
  }
  rest.remove_prefix(1);
  return true;
}

std::int64_t seconds_of_unit(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3'600;
    case 'd':
      return kDay;
    default:
      return 0;
  }
}

/// "90m", "1h30m"; nullopt: it is no length.
std::optional<seconds> length_in(std::string_view rest) {
  std::int64_t sum = 0;
  if (rest.empty()) {
    return std::nullopt;
  }
  while (!rest.empty()) {
    std::int64_t number = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const auto unit = rest.empty() ? 0 : seconds_of_unit(rest.front());
    if (error != std::errc() || number < 0 || number > 100'000'000 || unit == 0) {
      return std::nullopt;
    }
    rest.remove_prefix(1);
    sum += number * unit;
  }
  return seconds(sum);
}

/// Hours, minutes and seconds; those of seconds may be missing.
bool read_clock(std::string_view& rest, std::tm& into) {
  const auto hour = digits(rest, 2);
  const bool colon = literal(rest, ':');
  const auto minute = digits(rest, 2);
  if (!hour || !colon || !minute || *hour > 23 || *minute > 59) {
    return false;
  }
  into.tm_hour = *hour;
  into.tm_min = *minute;
  into.tm_sec = 0;
  if (literal(rest, ':')) {
    const auto second = digits(rest, 2);
    if (!second || *second > 59) {
      return false;
    }
    into.tm_sec = *second;
    if (literal(rest, '.')) {
      while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
        rest.remove_prefix(1);
      }
    }
  }
  return true;
}

std::chrono::year_month_day date_of(const std::tm& parts) {
  return {std::chrono::year(parts.tm_year + 1900),
          std::chrono::month(static_cast<unsigned>(parts.tm_mon + 1)),
          std::chrono::day(static_cast<unsigned>(parts.tm_mday))};
}

bool read_date(std::string_view& rest, std::tm& into) {
  const auto year = digits(rest, 4);
  const bool first = literal(rest, '-');
  const auto month = digits(rest, 2);
  const bool second = literal(rest, '-');
  const auto day = digits(rest, 2);
  if (!year || !first || !month || !second || !day || !(literal(rest, 'T') || literal(rest, ' '))) {
    return false;
  }
  into.tm_year = *year - 1900;
  into.tm_mon = *month - 1;
  into.tm_mday = *day;
  return date_of(into).ok();
}

/// Seconds east of UTC of "Z", "+01:00", "-0530"; nullopt: it is none of them.
std::optional<std::int64_t> read_zone(std::string_view rest) {
  if (rest == "Z" || rest == "z") {
    return 0;
  }
  const bool east = literal(rest, '+');
  if (!east && !literal(rest, '-')) {
    return std::nullopt;
  }
  const auto hours = digits(rest, 2);
  literal(rest, ':');
  const auto minutes = rest.empty() ? std::optional(0) : digits(rest, 2);
  if (!hours || !minutes || !rest.empty() || *hours > 14 || *minutes > 59) {
    return std::nullopt;
  }
  return (east ? 1 : -1) * (*hours * 3'600 + *minutes * 60);
}

}  // namespace

std::string to_the_second(const std::string& time) {
  // "2026-11-22T14:32:07.1234567Z"
  return time.size() >= 19 ? time.substr(0, 19) + "Z" : time;
}

std::string time_of(const nlohmann::json& object, const char* name) {
  const auto text = text_of(object, name);
  return text.empty() ? "-" : to_the_second(text);
}

std::string length_text(seconds length) {
  const auto all = std::max<std::int64_t>(length.count(), 0);
  const auto two = [](std::int64_t large, const char* first, std::int64_t small,
                      const char* second) {
    return small == 0 ? fmt::format("{} {}", large, first)
                      : fmt::format("{} {} {} {}", large, first, small, second);
  };
  if (all < 120) {
    return fmt::format("{} s", all);
  }
  const auto minutes = (all + 30) / 60;
  if (minutes < 60) {
    return fmt::format("{} min", minutes);
  }
  const auto hours = minutes / 60;
  return hours < 48 ? two(hours, "h", minutes % 60, "min") : two(hours / 24, "d", hours % 24, "h");
}

std::string fine_length_text(std::chrono::duration<double> length) {
  if (length.count() > 0 && length.count() < 0.9995) {
    return fmt::format(
        "{} ms",
        std::max<std::int64_t>(std::chrono::round<std::chrono::milliseconds>(length).count(), 1));
  }
  return length.count() < 10 ? fmt::format("{:.1f} s", length.count())
                             : length_text(std::chrono::round<seconds>(length));
}

std::string range_text(seconds low, seconds high) {
  const auto first = length_text(low);
  const auto last = length_text(high);
  return first == last ? first : fmt::format("{} to {}", first, last);
}

Result<Ticks> parse_until(const std::string& text, Ticks now) {
  if (const auto length = length_in(text)) {
    return Ticks(now.value() + length->count() * kTicksPerSecond);
  }
  const Error wrong{Errc::kInvalidArgument,
                    fmt::format("\"{}\" is no time to come; it takes a length such as 2h, 90m or "
                                "1d12h, a time with its zone such as 2026-11-22T06:00:00Z or "
                                "2026-11-22T06:00+01:00, or a time of this machine such as "
                                "2026-11-22T06:00 or 06:00",
                                text)};
  std::string_view rest = text;
  std::tm parts{};
  parts.tm_isdst = -1;
  const auto now_unix = (now.value() - kUnixEpoch.value()) / kTicksPerSecond;
  const bool dated = text.size() > 5 && text[4] == '-';
  if (!dated) {
    const std::time_t seconds_now = now_unix;
    ::localtime_r(&seconds_now, &parts);
    parts.tm_isdst = -1;
  }
  if ((dated && !read_date(rest, parts)) || !read_clock(rest, parts)) {
    return wrong;
  }
  if (rest.empty()) {
    auto local = parts;
    auto time = std::mktime(&local);
    if (!dated && time <= now_unix) {
      local = parts;
      ++local.tm_mday;
      time = std::mktime(&local);
    }
    return time < 0 ? Result<Ticks>(wrong) : Result<Ticks>(ticks_at_unix(time));
  }
  const auto east = read_zone(rest);
  if (!dated || !east) {
    return wrong;
  }
  const auto time = unix_seconds_of(parts);
  return time < 0 ? Result<Ticks>(wrong) : Result<Ticks>(ticks_at_unix(time - *east));
}

}  // namespace verger::cli
