#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/base/types.h"

namespace verger {

/// Time since an arbitrary start; never goes back.
using Monotonic = std::chrono::nanoseconds;

/// The only source of time. Comes in through constructors. Safe from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Wall-clock time, UTC. May jump.
  virtual Ticks now() = 0;
  virtual Monotonic monotonic() = 0;
};

/// The clock of the machine.
Clock& system_clock();

/// "2024-01-02T03:04:05.1234567Z": trailing zeros of the fraction are dropped, as the server does.
std::string format_ticks(Ticks time);
/// Reads what format_ticks writes; the zone suffix may be missing (UTC). Error: kInvalidArgument.
Result<Ticks> parse_ticks(std::string_view text);
/// "[d.]hh:mm:ss[.fffffff]", the server's form of a duration; `ticks` of 100 ns.
std::string format_duration(std::int64_t ticks);

}  // namespace verger
