#pragma once

#include <array>
#include <string>
#include <string_view>

#include "controller/scheduler/intervals.h"
#include "engine/base/nearest_name.h"
#include "engine/base/result.h"
#include "engine/base/types.h"

namespace date {
class time_zone;  // NOLINT(readability-identifier-naming): the library's name
}  // namespace date

namespace verger::controller {

/// As people read them; by std::chrono::weekday::c_encoding().
inline constexpr std::array<std::string_view, 7> kDayNames{"Sun", "Mon", "Tue", "Wed",
                                                           "Thu", "Fri", "Sat"};

/// A zone of the IANA database, as the machine has it. A plain value; safe from any thread.
///
/// Daylight saving, for all of Verger:
///  - a window holds the instants at which the wall clock shows a time inside it. What lies in a
///    gap does not exist that day; what lies in a repeated hour happens twice.
///  - a schedule is due once for each wall-clock time: in a gap at the first instant after it, in a
///    repeated hour at the first of the two.
class Zone {
 public:
  /// UTC.
  Zone();
  /// Errors: kInvalidArgument, with the name that comes nearest.
  static Result<Zone> find(std::string_view name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] LocalSeconds to_local(Instant instant) const;
  /// When a schedule for that wall-clock time is due.
  [[nodiscard]] Instant due_at(LocalSeconds local) const;
  /// Adds the instants at which the wall clock shows a time in [from, to).
  void add_instants(LocalSeconds from, LocalSeconds to, IntervalSet& into) const;
  /// "Sun 2024-10-27 02:30 CEST"
  [[nodiscard]] std::string format(Instant instant) const;
  friend bool operator==(const Zone& a, const Zone& b) { return a.name_ == b.name_; }

 private:
  const date::time_zone* zone_;
  std::string name_;
};

Instant to_instant(Ticks ticks);  ///< rounded down
Ticks to_ticks(Instant instant);
/// "2 h 30 min", "45 s", "3 d 4 h"; for people.
std::string format_length(std::chrono::seconds length);

}  // namespace verger::controller
