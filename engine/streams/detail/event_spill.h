#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/types.h"
#include "engine/streams/event_store.h"

namespace verger::streams::detail {

/// Stands for a stream: the first half of its name's SHA-256.
using StreamKey = std::array<std::byte, 16>;

/// What a stream's metadata event says about visibility; 0: nothing.
struct SpilledLimits {
  std::int64_t max_count = 0;
  std::int64_t truncate_before = 0;
  std::int64_t max_age_seconds = 0;
};

/// What is kept of an event until it is known who can read it.
struct SpilledEvent {
  StreamKey stream{};
  EventNumber number{-1};
  Ticks timestamp{0};
  LogPosition position{0};
  Sha256Digest digest{};
  /// Of a metadata event: the stream it is about, that one's original where it is a metastream
  /// itself, and so on. Empty: it is an ordinary event.
  std::vector<StreamKey> originals{};
  SpilledLimits limits{};  ///< of a metadata event
};

/// Events in the order they were added, apart by partitions; in memory up to a limit, beyond it in
/// one temporary file whose name is gone as soon as it is open. First add(), then read partition by
/// partition. About 60 bytes an event.
class EventSpill {
 public:
  static constexpr std::size_t kPartitions = 512;

  explicit EventSpill(const DigestOptions& options) : options_(options) {}

  /// The memory that the next add() to it writes to is fetched meanwhile.
  void expect(std::size_t partition) const {
    const auto& open = partitions_[partition].open;
    __builtin_prefetch(open.data() + open.size(), 1);
  }
  /// Errors: kNoSpace (the temporary directory must keep DigestOptions::keep_free), kIo.
  Result<void> add(std::size_t partition, const SpilledEvent& event);
  [[nodiscard]] std::size_t segments(std::size_t partition) const;
  /// Bytes of all its segments.
  [[nodiscard]] std::uint64_t bytes(std::size_t partition) const;
  /// The events of one of its segments, in order; the earlier segment has the earlier events.
  /// `into` keeps its first `kept` events.
  Result<void> read(std::size_t partition, std::size_t segment, std::size_t kept,
                    std::vector<SpilledEvent>& into) const;
  /// Frees what is in memory of it; it is not read again.
  void drop(std::size_t partition);
  [[nodiscard]] std::uint64_t bytes_on_disk() const { return file_size_; }

 private:
  /// In memory, or in the file.
  struct Segment {
    Bytes bytes{};
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  struct Partition {
    std::vector<Segment> sealed;
    Bytes open;
    // Of the newest event in `open`: the next one is stored as the difference.
    StreamKey last_stream{};
    Ticks last_timestamp{0};
    LogPosition last_position{0};
  };

  static void append(Partition& partition, const SpilledEvent& event);
  void seal(Partition& partition);
  Result<void> write_out();

  DigestOptions options_;
  std::array<Partition, kPartitions> partitions_;
  std::uint64_t in_memory_ = 0;
  std::unique_ptr<File> file_;
  std::uint64_t file_size_ = 0;
};

}  // namespace verger::streams::detail
