#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <string_view>

#include "controller/scheduler/zones.h"

namespace verger::controller {

/// Five fields in the zone's wall-clock time: minute, hour, day of the month, month, day of the
/// week (0 and 7 are Sunday). Lists, ranges, steps, names (jan, mon) and @hourly, @daily, @weekly,
/// @monthly. Where both days are given, either will do, as in every cron. Each wall-clock time is
/// due once; see Zone for gaps and repeats.
class CronSchedule {
 public:
  /// Errors: kInvalidArgument, naming the field; also for a time that never comes (30 February).
  static Result<CronSchedule> parse(std::string_view text, Zone zone);

  /// The first due time after `instant`; nullopt: none within nine years.
  [[nodiscard]] std::optional<Instant> next_after(Instant instant) const;
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const Zone& zone() const { return zone_; }

 private:
  [[nodiscard]] bool matches(std::chrono::local_days day) const;

  std::string text_;
  Zone zone_;
  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;
  std::bitset<13> months_;
  std::bitset<8> weekdays_;  ///< 0 = Sunday
  bool any_day_ = true;      ///< the field was *
  bool any_weekday_ = true;
};

}  // namespace verger::controller
