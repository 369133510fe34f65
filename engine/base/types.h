#pragma once

#include <compare>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <limits>

namespace verger {

/// A number with a meaning: two quantities of different meaning cannot be swapped in a call.
template <class Tag, class Rep>
class Strong {
 public:
  constexpr Strong() = default;
  constexpr explicit Strong(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;

 private:
  Rep value_ = 0;
};

/// Place in the log, in bytes from its start; stays with a record for ever. -1 is "none".
using LogPosition = Strong<struct LogPositionTag, std::int64_t>;
/// Number of a logical chunk: floor(log position / chunk size).
using ChunkNumber = Strong<struct ChunkNumberTag, std::int32_t>;
/// Number of an event in its stream, from 0. -1 is "no stream".
using EventNumber = Strong<struct EventNumberTag, std::int64_t>;
/// Number of a leader's term; only grows. -1 is "none".
using EpochNumber = Strong<struct EpochNumberTag, std::int32_t>;
/// 64-bit hash of a stream's name (docs/formats/index.md).
using StreamHash = Strong<struct StreamHashTag, std::uint64_t>;
/// Time: count of 100 ns since 0001-01-01T00:00:00 UTC, as records carry it.
using Ticks = Strong<struct TicksTag, std::int64_t>;

constexpr LogPosition operator+(LogPosition a, std::int64_t bytes) {
  return LogPosition(a.value() + bytes);
}
constexpr std::int64_t operator-(LogPosition a, LogPosition b) { return a.value() - b.value(); }

inline constexpr LogPosition kNoPosition{-1};
inline constexpr EventNumber kNoStream{-1};
/// Event number of a tombstone: the stream is deleted for ever.
inline constexpr EventNumber kDeletedStream{std::numeric_limits<std::int64_t>::max()};

inline constexpr std::int64_t kTicksPerSecond = 10'000'000;
inline constexpr std::int64_t kTicksPerMillisecond = 10'000;
inline constexpr Ticks kUnixEpoch{621'355'968'000'000'000};
inline constexpr Ticks kMaxTicks{3'155'378'975'999'999'999};

}  // namespace verger

template <class Tag, class Rep>
struct fmt::formatter<verger::Strong<Tag, Rep>> : fmt::formatter<Rep> {
  template <class Context>
  auto format(const verger::Strong<Tag, Rep>& number, Context& context) const {
    return fmt::formatter<Rep>::format(number.value(), context);
  }
};

template <class Tag, class Rep>
struct std::hash<verger::Strong<Tag, Rep>> {
  std::size_t operator()(const verger::Strong<Tag, Rep>& number) const noexcept {
    return std::hash<Rep>{}(number.value());
  }
};
