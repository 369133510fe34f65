#include "engine/base/clock.h"

#include <fmt/format.h>
#include <optional>
#include <utility>

namespace verger {
namespace {

class SystemClock final : public Clock {
 public:
  Ticks now() override {
    using TickCount = std::chrono::duration<std::int64_t, std::ratio<1, kTicksPerSecond>>;
    const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
    return Ticks(kUnixEpoch.value() + std::chrono::duration_cast<TickCount>(since_epoch).count());
  }
  Monotonic monotonic() override {
    return std::chrono::duration_cast<Monotonic>(
        std::chrono::steady_clock::now().time_since_epoch());
  }
};

constexpr std::int64_t kSecondsPerDay = 86'400;
constexpr std::int64_t kTicksPerDay = kSecondsPerDay * kTicksPerSecond;

/// Days between 0001-01-01 and 1970-01-01, proleptic Gregorian.
constexpr std::chrono::days kEpochDay(kUnixEpoch.value() / kTicksPerDay);

constexpr std::chrono::year_month_day date_of(std::int64_t days) {
  return std::chrono::sys_days(std::chrono::days(days) - kEpochDay);
}

constexpr std::int64_t days_of(const std::chrono::year_month_day& date) {
  return (std::chrono::sys_days(date).time_since_epoch() + kEpochDay).count();
}

static_assert(days_of(std::chrono::year(1) / 1 / 1) == 0);
static_assert(days_of(std::chrono::year(9999) / 12 / 31) * kTicksPerDay + kTicksPerDay - 1 ==
              kMaxTicks.value());

/// With leading zeros.
void append_digits(std::string& text, std::int64_t value, std::size_t count) {
  const auto end = text.size() + count;
  text.resize(end);
  for (std::size_t i = 1; i <= count; ++i, value /= 10) {
    text[end - i] = static_cast<char>('0' + value % 10);
  }
}

/// Takes pieces from the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool literal(char c) {
    if (rest_.empty() || rest_.front() != c) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<std::int64_t> digits(std::size_t count) {
    if (rest_.size() < count) {
      return std::nullopt;
    }
    std::int64_t value = 0;
    for (const char c : rest_.substr(0, count)) {
      if (c < '0' || c > '9') {
        return std::nullopt;
      }
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }
  /// One to seven digits after the point, as ticks.
  std::optional<std::int64_t> fraction() {
    std::int64_t ticks = 0;
    std::int64_t unit = kTicksPerSecond;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      unit /= 10;
      if (unit == 0) {
        return std::nullopt;
      }
      ticks += (rest_.front() - '0') * unit;
      rest_.remove_prefix(1);
    }
    return unit == kTicksPerSecond ? std::nullopt : std::optional(ticks);
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::optional<std::int64_t> scan_ticks(std::string_view text) {
  Scanner in(text);
  const auto year = in.digits(4);
  const auto month = in.literal('-') ? in.digits(2) : std::nullopt;
  const auto day = in.literal('-') ? in.digits(2) : std::nullopt;
  const auto hour = in.literal('T') ? in.digits(2) : std::nullopt;
  const auto minute = in.literal(':') ? in.digits(2) : std::nullopt;
  const auto second = in.literal(':') ? in.digits(2) : std::nullopt;
  if (!year || !month || !day || !hour || !minute || !second) {
    return std::nullopt;
  }
  const auto fraction = in.literal('.') ? in.fraction() : std::optional<std::int64_t>(0);
  if (!fraction || (!in.rest().empty() && in.rest() != "Z" && in.rest() != "+00:00")) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (*year < 1 || !date.ok() || *hour > 23 || *minute > 59 || *second > 59) {
    return std::nullopt;
  }
  const std::int64_t seconds = (*hour * 60 + *minute) * 60 + *second;
  return days_of(date) * kTicksPerDay + seconds * kTicksPerSecond + *fraction;
}

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

std::string format_ticks(Ticks time) {
  if (time < Ticks(0) || time > kMaxTicks) {
    // Comes from a damaged record; the text says so instead of naming a year that is none.
    return fmt::format("(no valid time: {} ticks)", time);
  }
  const auto date = date_of(time.value() / kTicksPerDay);
  const std::int64_t seconds = time.value() % kTicksPerDay / kTicksPerSecond;
  const std::int64_t fraction = time.value() % kTicksPerSecond;
  std::string text;
  text.reserve(sizeof "2024-01-02T03:04:05.1234567Z");
  append_digits(text, int{date.year()}, 4);
  for (const auto& [mark, value] :
       {std::pair('-', std::int64_t{unsigned{date.month()}}),
        std::pair('-', std::int64_t{unsigned{date.day()}}), std::pair('T', seconds / 3600),
        std::pair(':', seconds / 60 % 60), std::pair(':', seconds % 60)}) {
    text += mark;
    append_digits(text, value, 2);
  }
  if (fraction != 0) {
    text += '.';
    append_digits(text, fraction, 7);
    text.erase(text.find_last_not_of('0') + 1);
  }
  text += 'Z';
  return text;
}

Result<Ticks> parse_ticks(std::string_view text) {
  if (const auto ticks = scan_ticks(text)) {
    return Ticks(*ticks);
  }
  return Error{Errc::kInvalidArgument,
               fmt::format("\"{}\" is not a time (expected UTC as 2024-01-02T03:04:05.1234567Z, "
                           "years 0001 to 9999)",
                           text.substr(0, 64))};
}

std::string format_duration(std::int64_t ticks) {
  // Negated as unsigned, so that the smallest value has no special case.
  const std::uint64_t size =
      ticks < 0 ? 0 - static_cast<std::uint64_t>(ticks) : static_cast<std::uint64_t>(ticks);
  constexpr std::uint64_t kPerSecond = kTicksPerSecond;
  const std::uint64_t seconds = size / kPerSecond;
  const std::uint64_t days = seconds / kSecondsPerDay;
  auto text = std::string(ticks < 0 ? "-" : "");
  if (days != 0) {
    text += fmt::format("{}.", days);
  }
  text += fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  if (size % kPerSecond != 0) {
    text += fmt::format(".{:07}", size % kPerSecond);
  }
  return text;
}

}  // namespace verger
