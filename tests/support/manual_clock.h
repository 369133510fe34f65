#pragma once

#include "engine/base/clock.h"

namespace verger::test {

/// 2024-01-01T00:00:00Z
inline constexpr Ticks kTestTime{638'396'640'000'000'000};

/// A clock that stands still until it is moved. One thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Ticks now = kTestTime) : now_(now) {}
  Ticks now() override { return now_; }
  Monotonic monotonic() override { return monotonic_; }

  void set(Ticks now) { now_ = now; }
  void advance_seconds(std::int64_t seconds) {
    now_ = Ticks(now_.value() + seconds * kTicksPerSecond);
    monotonic_ += std::chrono::seconds(seconds);
  }

 private:
  Ticks now_;
  Monotonic monotonic_{0};
};

}  // namespace verger::test
