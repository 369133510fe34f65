#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/log/chunk.h"
#include "engine/scavenge/chunk_rewrite.h"
#include "engine/scavenge/estimate.h"
#include "engine/scavenge/rules.h"

namespace verger::scavenge::detail {

/// What an estimate wants to know of some records of a chunk that follow each other: compact, so
/// that chunks can be counted side by side.
struct CountedRecords {
  /// A record that goes.
  struct Removed {
    std::uint64_t name_hash = 0;  ///< as of TopStreams
    EventNumber number;
    std::uint32_t name_offset = 0;
    std::uint32_t name_size = 0;
    std::uint32_t bytes = 0;
    std::optional<RemovalRule> rule;  ///< nullopt: RemovalFacts say it
  };

  Volume kept;
  std::vector<Removed> removed;
  std::string text;            ///< names of streams
  bool ended = false;          ///< nothing of the chunk follows
  std::optional<Error> error;  ///< after all of that

  [[nodiscard]] std::string_view name_of(const Removed& record) const {
    return std::string_view(text).substr(record.name_offset, record.name_size);
  }
  [[nodiscard]] std::size_t bytes() const { return text.size() + removed.size() * sizeof(Removed); }
};

/// Reads one chunk file. One thread at a time, independent of other counters.
class ChunkCounter {
 public:
  static Result<std::unique_ptr<ChunkCounter>> open(std::shared_ptr<const log::Chunk> chunk,
                                                    const RunRules& rules, LimitsReader limits);
  /// What about `records` records say, or less.
  CountedRecords read(std::uint32_t records);

 private:
  ChunkCounter(std::shared_ptr<const log::Chunk> chunk, log::ChunkScanner scanner,
               const RunRules& rules, LimitsReader limits);
  Result<void> read_into(CountedRecords& counted, std::uint32_t records);
  Result<void> take(const log::LogRecord& record, const LimitsReader::Key& key,
                    CountedRecords& counted);

  std::shared_ptr<const log::Chunk> chunk_;
  log::ChunkScanner scanner_;
  RunRules rules_;
  LimitsReader limits_;
};

}  // namespace verger::scavenge::detail
