#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

#include "engine/base/types.h"

namespace verger {

/// Seconds since 1970-01-01T00:00:00Z of a date and time of day in UTC, which have to be valid;
/// other members of `utc` than these six are not looked at.
constexpr std::int64_t unix_seconds_of(const std::tm& utc) {
  const std::chrono::year_month_day date(std::chrono::year(utc.tm_year + 1900),
                                         std::chrono::month(static_cast<unsigned>(utc.tm_mon + 1)),
                                         std::chrono::day(static_cast<unsigned>(utc.tm_mday)));
  const auto time = std::chrono::sys_days(date) + std::chrono::hours(utc.tm_hour) +
                    std::chrono::minutes(utc.tm_min) + std::chrono::seconds(utc.tm_sec);
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

constexpr Ticks ticks_at_unix(std::int64_t seconds) {
  return Ticks(kUnixEpoch.value() + seconds * kTicksPerSecond);
}

}  // namespace verger
