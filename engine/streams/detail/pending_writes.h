#pragma once

#include <deque>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

#include "engine/streams/detail/record_feed.h"

namespace verger::streams::detail {

/// What lies in the log but is not committed yet, in log order, and what the streams look like once
/// it is. Used by the writing thread only.
class PendingWrites {
 public:
  /// A stretch of the log that has not been read yet.
  struct Range {
    LogPosition begin;
    LogPosition end;
  };
  using Item = std::variant<Write, Range>;

  void push(Write write);
  void push(Range range);
  bool empty() const { return items_.empty(); }
  bool has_ranges() const { return ranges_ > 0; }
  Item& front() { return items_.front(); }
  void pop_front();
  /// Takes everything out.
  std::deque<Item> take();
  void clear() { static_cast<void>(take()); }

  /// Number of the stream's newest event in flight.
  std::optional<EventNumber> last(std::string_view stream) const;
  /// Newest metadata in flight of `stream` (not of its metastream).
  const RawMetadata* metadata(std::string_view stream) const;

 private:
  struct Stream {
    EventNumber last;
    int writes = 0;
    std::optional<RawMetadata> metadata;
  };

  std::deque<Item> items_;
  std::unordered_map<std::string, Stream> streams_;
  int ranges_ = 0;
};

/// The newest event ids, so that a repeated write is recognised at any expected version.
class RecentEvents {
 public:
  struct Entry {
    std::string stream;
    WrittenEvent event;
  };
  explicit RecentEvents(std::size_t capacity) : capacity_(capacity) {}

  void add(const Write& write);
  /// nullptr when the id was not written to `stream` lately.
  const Entry* find(std::string_view stream, const Uuid& id) const;
  void truncate(LogPosition position);

 private:
  struct UuidHash {
    std::size_t operator()(const Uuid& id) const noexcept {
      return load_le<std::size_t>(id.bytes.data()) ^ load_le<std::size_t>(id.bytes.data() + 8);
    }
  };

  std::size_t capacity_;
  std::unordered_map<Uuid, Entry, UuidHash> entries_;
  std::deque<std::pair<Uuid, LogPosition>> order_;
};

/// The last event numbers of the streams that were written last, as a server's writer remembers
/// them: right as long as only this writer appends, forgotten where others did. What it remembers
/// of a metastream counts even where its stream was deleted since: so metadata of a deleted stream
/// is taken for a while (node-interface.md, 8.3).
class WrittenVersions {
 public:
  /// Of so many streams, as the server.
  explicit WrittenVersions(std::size_t capacity) : capacity_(capacity) {}

  void put(const std::string& stream, EventNumber last);
  std::optional<EventNumber> find(std::string_view stream) const;
  void clear();

 private:
  struct Entry {
    std::string stream;
    EventNumber last;
  };
  std::size_t capacity_;
  std::list<Entry> order_;                                                    ///< the newest first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> entries_;  ///< names in `order_`
};

}  // namespace verger::streams::detail
