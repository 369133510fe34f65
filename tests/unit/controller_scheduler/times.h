#pragma once

#include <date/date.h>
#include <sstream>

#include "controller/scheduler/schedule_policy.h"

namespace verger::controller::testing {

/// "2024-03-31 01:30", UTC.
inline Instant at(const std::string& text) {
  std::istringstream in(text);
  Instant out;
  in >> date::parse("%F %H:%M", out);
  if (in.fail()) {
    throw std::invalid_argument(text);
  }
  return out;
}

inline Zone zone(std::string_view name) { return Zone::find(name).value(); }

inline std::string text_of(Instant instant) {
  return date::format("%F %H:%M", date::sys_seconds(instant));
}

/// "2024-03-31 01:30..2024-03-31 02:00 | ..."
inline std::string text_of(const IntervalSet& set) {
  std::string out;
  for (const auto& each : set.intervals()) {
    out += (out.empty() ? "" : " | ") + text_of(each.from) + ".." + text_of(each.to);
  }
  return out;
}

}  // namespace verger::controller::testing
