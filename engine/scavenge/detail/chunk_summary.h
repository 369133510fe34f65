#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/index/stream_hash.h"
#include "engine/log/chunk.h"
#include "engine/log/chunk_checksum.h"
#include "engine/scavenge/detail/pending_records.h"
#include "engine/scavenge/detail/seen_names.h"
#include "engine/scavenge/types.h"

namespace verger::scavenge::detail {

/// What accumulating wants to know of some records that follow each other: compact, and free of
/// what other records say, so that chunks can be read side by side.
struct ChunkSummary {
  struct Name {
    PendingName name;
    SeenNames::Key key;
  };
  struct WithoutNumber {
    LogPosition position;
    PendingName stream;
    EventNumber number;
  };

  std::string text;
  std::vector<Name> names;  ///< in the order of the log, most repetitions left out
  std::vector<PendingRecord> records;
  std::vector<WithoutNumber> without_number;  ///< the first of them
  std::optional<TimeRange> range;
  std::uint64_t count = 0;  ///< of records
  std::uint64_t originals = 0;
  std::uint64_t metadatas = 0;
  std::uint64_t tombstones = 0;
  bool ended = false;          ///< nothing of the logical chunk follows
  bool point_reached = false;  ///< its last record is the scavenge point
  std::optional<Error> error;  ///< after all of that

  [[nodiscard]] std::string_view text_of(PendingName name) const {
    return std::string_view(text).substr(name.offset, name.size);
  }
  [[nodiscard]] std::size_t bytes() const {
    return text.size() + names.size() * sizeof(Name) + records.size() * sizeof(PendingRecord) +
           without_number.size() * sizeof(WithoutNumber);
  }
};

/// Reads one logical chunk, up to the scavenge point. One thread at a time, independent of other
/// readers.
class ChunkReader {
 public:
  struct Range {
    LogPosition start;
    LogPosition end;
    LogPosition point;
  };
  /// `chunk` is the file that holds the range. With `checksum` what is read is hashed.
  static Result<std::unique_ptr<ChunkReader>> open(std::shared_ptr<const log::Chunk> chunk,
                                                   Range range, index::HashFunction hash,
                                                   std::optional<log::ChunkChecksum> checksum);

  /// What about `records` records say, or less.
  ChunkSummary read(std::uint32_t records);
  /// Nothing more is read.
  void free_memory();
  /// Compares the chunk with its checksum, where it was opened with one.
  Result<void> finish_checksum();
  [[nodiscard]] const log::Chunk& chunk() const { return *chunk_; }

 private:
  ChunkReader(std::shared_ptr<const log::Chunk> chunk, log::ChunkScanner scanner, Range range,
              index::HashFunction hash, std::optional<log::ChunkChecksum> checksum);
  Result<void> read_into(ChunkSummary& summary, std::uint32_t records);
  /// `key`: of its stream.
  Result<void> take(const log::Prepare& prepare, const SeenNames::Key& key, ChunkSummary& summary);
  Result<void> take_metadata(const log::Prepare& prepare, const SeenNames::Key& key,
                             ChunkSummary& summary);
  Result<void> take_tombstone(const log::Prepare& prepare, const SeenNames::Key& key,
                              ChunkSummary& summary);
  void note(std::string_view stream, const SeenNames::Key& key, ChunkSummary& summary);

  std::shared_ptr<const log::Chunk> chunk_;
  std::optional<log::ChunkScanner> scanner_;
  Range range_;
  index::HashFunction hash_;
  std::optional<log::ChunkChecksum> checksum_;
  SeenNames seen_;
};

}  // namespace verger::scavenge::detail
