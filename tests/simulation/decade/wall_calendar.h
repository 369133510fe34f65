#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/random.h"
#include "tests/simulation/control/wall_time.h"

namespace verger::sim {

/// The judged time: minutes since its beginning.
inline constexpr std::int64_t kDecadeBegins = 1'735'689'600;  ///< 2025-01-01, seconds since 1970
inline constexpr int kDecadeMinutes = 5'258'880;              ///< up to 2035-01-01

/// A schedule as a person wrote it: each of these minutes of each of these hours, on these days.
struct WrittenSchedule {
  std::string zone;
  std::vector<int> minutes;
  std::vector<int> hours;
  unsigned weekdays = 0x7fU;  ///< bit 0 = Sunday
  [[nodiscard]] bool matches(const WallTime::Reading& wall) const;
  [[nodiscard]] std::string cron() const;
};

/// A policy as a person wrote it.
struct WrittenPolicy {
  std::vector<WrittenSchedule> schedules;
  std::vector<DenyWindow> allow;
  std::vector<DenyWindow> deny;
  std::string catch_up;
  [[nodiscard]] std::string yaml() const;
};
WrittenPolicy any_policy(Random& random);

/// What the wall clocks of a policy's zones show in each minute of the decade: the judge of the
/// controller's windows and schedules. Its rules are those of controller/scheduler/zones.h, applied
/// minute by minute.
struct WallCalendar {
  explicit WallCalendar(const WrittenPolicy& policy);
  std::vector<bool> open;  ///< by minute
  std::vector<int> due;    ///< minutes, ascending, each once
  /// The first open minute from `minute` on; kDecadeMinutes: none.
  [[nodiscard]] int first_open(int minute) const;
};

}  // namespace verger::sim
