#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <vector>

#include "controller/scheduler/zones.h"

namespace verger::controller {

/// A stretch of wall-clock time in its own zone: every week on some days, or once.
struct Window {
  std::string name;  ///< for people; may be empty
  Zone zone;
  bool weekly = true;
  // weekly
  std::bitset<7> weekdays;         ///< 0 = Sunday: the day on which it begins
  std::chrono::minutes from{0};    ///< since midnight
  std::chrono::minutes to{1'440};  ///< at or before `from`: on the next day
  // once
  LocalSeconds first;
  LocalSeconds last;  ///< not part of it

  /// Adds its instants, as far as they lie in `range`.
  void add_to(IntervalSet& set, Interval range) const;
  /// "\"office hours\" (Mon-Fri 08:00-18:00 Europe/Berlin)"
  [[nodiscard]] std::string describe() const;
};

/// Deny wins. Without any allow window everything is allowed.
struct WindowRules {
  std::vector<Window> allow;
  std::vector<Window> deny;
  [[nodiscard]] bool empty() const { return allow.empty() && deny.empty(); }
};

/// When work may continue.
IntervalSet openings(const WindowRules& rules, Interval range);

struct Opening {
  bool open = true;
  Instant since;
  std::optional<Instant> until;  ///< nullopt: no change within 400 days
  std::string reason;            ///< which window closes, or that no window allows
};
Opening opening_at(const WindowRules& rules, Instant now);

}  // namespace verger::controller
