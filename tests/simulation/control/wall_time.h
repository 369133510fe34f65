#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/random.h"
#include "engine/base/types.h"

namespace verger::sim {

/// What a wall clock shows, read from the machine's C library: the judge of the controller's zones,
/// which come from another one.
class WallTime {
 public:
  /// Of an IANA name. Reads the transitions of 2024 to 2036 once per process and zone; changes TZ
  /// while it does.
  static const WallTime& of(std::string_view zone);

  struct Reading {
    std::int64_t day = 0;  ///< since 1970-01-01, by the wall
    int weekday = 0;       ///< 0 = Sunday
    int minute = 0;        ///< of the day
  };
  [[nodiscard]] Reading at(Ticks time) const;
  /// A change of the wall clock between 2024 and 2035; nullptr where there is none.
  [[nodiscard]] const std::int64_t* any_transition(Random& random) const;

 private:
  explicit WallTime(std::string_view zone);
  std::vector<std::int64_t> from_;     ///< seconds since 1970, ascending
  std::vector<std::int64_t> offsets_;  ///< from then on
};

Ticks ticks_of_unix(std::int64_t seconds);
std::int64_t unix_of_ticks(Ticks ticks);

/// A weekly deny window, as a person wrote it.
struct DenyWindow {
  std::string zone;
  int from = 0;           ///< minute of the day
  int to = 0;             ///< at or before `from`: on the next day
  unsigned days = 0x7fU;  ///< bit 0 = Sunday
  [[nodiscard]] bool holds(Ticks time) const;
  [[nodiscard]] std::string yaml() const;
};

}  // namespace verger::sim
