#include "engine/scavenge/throttle.h"

namespace verger::scavenge {

Throttle::Throttle(Clock& clock, int percent)
    : clock_(&clock), rest_fraction_(1.0 - percent / 100.0), started_(clock.monotonic()) {}

std::chrono::milliseconds Throttle::rest_due() {
  constexpr double kShortestRestMs = 1000;
  if (rest_fraction_ <= 0) {
    return {};
  }
  const double elapsed_ms =
      std::chrono::duration<double, std::milli>(clock_->monotonic() - started_).count();
  const double rest = (rest_fraction_ * elapsed_ms - rested_ms_) / (1 - rest_fraction_);
  if (rest < kShortestRestMs) {
    return {};
  }
  rested_ms_ += rest;
  return std::chrono::milliseconds(static_cast<std::int64_t>(rest));
}

std::chrono::milliseconds Throttle::rested() const {
  return std::chrono::milliseconds(static_cast<std::int64_t>(rested_ms_));
}

}  // namespace verger::scavenge
