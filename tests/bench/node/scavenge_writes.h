#pragma once

#include <cstdint>
#include <vector>

namespace verger::bench {

/// How long writes take at a leader without a scavenge, and during its own, at each throttle. Each
/// time on three new nodes with the same database, of which 60 % of the streams keep a sixth of
/// their events.
struct ScavengeWrites {
  std::uint64_t window_seconds = 10;  ///< without a scavenge
  std::uint64_t connections = 4;
  std::uint64_t size = 200;  ///< of an event's data
  std::uint64_t events = 3'000'000;
  std::vector<int> throttles{100, 50, 10};  ///< percent

  void measure() const;
};

}  // namespace verger::bench
