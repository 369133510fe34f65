#pragma once

#include <chrono>

#include "engine/base/clock.h"

namespace verger::scavenge {

/// Keeps the share of time spent working at `percent`. At a rest point the owner asks how long to
/// rest, and rests that long before it continues.
class Throttle {
 public:
  /// `percent` from 1 to 100; time counts from now on.
  Throttle(Clock& clock, int percent);
  /// Zero as long as less than a second is due: the debt stays.
  std::chrono::milliseconds rest_due();
  /// What has been handed out so far.
  std::chrono::milliseconds rested() const;

 private:
  Clock* clock_;
  double rest_fraction_;
  Monotonic started_;
  double rested_ms_ = 0;
};

}  // namespace verger::scavenge
