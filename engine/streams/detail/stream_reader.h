#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/clock.h"
#include "engine/index/index.h"
#include "engine/log/transaction_log.h"
#include "engine/streams/event_store.h"

namespace verger::streams::detail {

/// The latest metadata event of a stream, not yet interpreted.
struct RawMetadata {
  EventNumber number{-1};
  std::uint8_t record_version = 1;
  bool is_json = false;
  Bytes json;

  /// What the server makes of it: nothing unless it is JSON and not empty.
  [[nodiscard]] StreamMetadata parse() const;
};

Event make_event(const log::Prepare& prepare, EventNumber number, LogPosition commit);

/// Reads streams through the index. Safe from any thread.
class StreamReader {
 public:
  StreamReader(const log::TransactionLog& log, const index::Index& index, Clock& clock)
      : log_(log), index_(index), clock_(clock) {}

  Result<StreamSlice> read_forward(std::string_view stream, EventNumber from,
                                   std::size_t count) const;
  Result<StreamSlice> read_backward(std::string_view stream, EventNumber from,
                                    std::size_t count) const;
  /// kDeletedStream for a metastream, too, when its original stream is deleted for good.
  Result<EventNumber> last_event_number(std::string_view stream) const;
  /// Metastreams have a fixed one: maxCount 1.
  Result<StreamMetadata> metadata(std::string_view stream) const;
  /// nullopt when there is no metadata event.
  Result<std::optional<RawMetadata>> raw_metadata(std::string_view stream) const;
  /// The event with that number, even beyond the limits; nullopt when there is none.
  Result<std::optional<Event>> find(std::string_view stream, EventNumber number) const;

 private:
  struct Limits {
    std::int64_t first = 0;  ///< numbers below are hidden
    Ticks oldest{0};         ///< so are events before this time
  };
  /// What last and metadata say about reading the stream at all.
  struct State {
    StreamStatus status = StreamStatus::kSuccess;
    EventNumber last{-1};
    Limits limits;
  };

  /// The prepare an index entry points to; nullopt when it was scavenged away. The views point
  /// into `buffer`.
  Result<std::optional<log::Prepare>> prepare_at(LogPosition position, Bytes& buffer) const;
  Result<EventNumber> own_last(std::string_view stream) const;
  Result<State> state_of(std::string_view stream) const;
  /// Events numbered [from, to], ascending: of equal numbers the one at the lowest position.
  Result<std::vector<Event>> events(std::string_view stream, std::int64_t from,
                                    std::int64_t to) const;

  const log::TransactionLog& log_;
  const index::Index& index_;
  Clock& clock_;
};

}  // namespace verger::streams::detail
