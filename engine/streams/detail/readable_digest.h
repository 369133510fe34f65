#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "engine/base/digest.h"
#include "engine/log/record.h"
#include "engine/streams/event_store.h"

namespace verger::streams::detail {

/// The digest over what readers see of a stretch of the log, independent of the order in which
/// events are handed in: the sum, modulo 2^256, of the SHA-256 of every visible event.
///
/// First learn() about all events, then add() them all again. Memory grows with the number of
/// streams, not of events.
class ReadableDigest {
 public:
  /// Asked where the readable event of that number lies when numbers repeat in a stream.
  using Locator =
      std::function<Result<std::optional<LogPosition>>(std::string_view stream, EventNumber)>;
  ReadableDigest(Ticks now, Locator locate) : now_(now), locate_(std::move(locate)) {}

  void learn(const log::Prepare& prepare, EventNumber number);
  Result<void> add(const log::Prepare& prepare, EventNumber number);
  std::uint64_t count() const { return count_; }
  Sha256Digest value() const;

 private:
  struct Stream {
    EventNumber last{-1};
    EventNumber last_added{-1};
    // From the newest metadata event.
    EventNumber metadata_number{-1};
    std::int64_t max_count = 0;  ///< 0: none
    std::int64_t truncate_before = 0;
    std::int64_t max_age_seconds = 0;  ///< 0: none
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>{}(name);
    }
  };

  Stream& stream(std::string_view name);
  bool visible(std::string_view name, const Stream& stream, const log::Prepare& prepare,
               EventNumber number) const;

  Ticks now_;
  Locator locate_;
  std::unordered_map<std::string, Stream, Hash, std::equal_to<>> streams_;
  std::array<std::uint64_t, 4> sum_{};
  std::uint64_t count_ = 0;
};

}  // namespace verger::streams::detail
