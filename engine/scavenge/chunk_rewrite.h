#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "engine/base/log.h"
#include "engine/log/chunk.h"
#include "engine/log/chunk_checksum.h"
#include "engine/log/transaction_log.h"
#include "engine/scavenge/detail/limits_table.h"
#include "engine/scavenge/detail/name_cache.h"
#include "engine/scavenge/rules.h"
#include "engine/scavenge/scavenge_state.h"

namespace verger::scavenge {

/// The limits of streams, for several threads at once; each has a LimitsReader of its own.
/// They do not change while it lives.
class SharedLimits {
 public:
  /// Takes the limits of all streams into memory, unless they are too many. `pause` is called now
  /// and then; its error ends it.
  static Result<std::unique_ptr<SharedLimits>> load(ScavengeState& state,
                                                    const std::function<Result<void>()>& pause);
  Result<StreamLimits> find(std::string_view stream);
  /// To be held where the state is used beside readers.
  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

 private:
  friend class LimitsReader;
  explicit SharedLimits(ScavengeState& state) : state_(&state) {}

  std::mutex mutex_;
  ScavengeState* state_;
  std::unique_ptr<const detail::LimitsTable> table_;  ///< nullptr: too many
};

/// One thread's view of the limits. Where they are not in memory it remembers those of the streams
/// it met last.
class LimitsReader {
 public:
  LimitsReader(SharedLimits& shared, std::size_t cache_entries);
  /// What is known of a stream before its limits are looked for.
  struct Key {
    bool metastream = false;
    bool in_table = false;  ///< found by its hash
    StreamHash hash;
  };
  /// The memory that find() will look at is fetched meanwhile.
  Key expect(std::string_view stream) const;
  /// Valid until the next call.
  Result<const StreamLimits*> find(std::string_view stream, const Key& key);
  Result<const StreamLimits*> find(std::string_view stream) { return find(stream, expect(stream)); }

 private:
  SharedLimits* shared_;
  detail::NameCache<StreamLimits> cache_;
  StreamLimits found_;
};

/// Copies what stays of one physical chunk into a new file. One thread at a time, independent of
/// other rewrites. Destroying it before it is finished removes the file.
class ChunkRewrite {
 public:
  struct Names {
    std::string temporary;  ///< file name in the log's directory, ends in ".tmp"
    Uuid chunk_id;
  };
  /// `hasher`: as of ChunkWriter::create.
  static Result<std::unique_ptr<ChunkRewrite>> start(FileSystem& files,
                                                     const log::TransactionLog& log,
                                                     std::shared_ptr<const log::Chunk> chunk,
                                                     const Names& names, const RunRules& rules,
                                                     Log& out, std::shared_ptr<Md5Thread> hasher);
  /// The source is compared with its checksum before the new file is complete.
  void compare_checksum(bool in_background) { checksum_.emplace(source_, in_background); }

  /// Continues for about `records` records, or some megabytes; true once all records are copied.
  /// Errors: kUnsupported (a record that the server fails on), kCorruption, kIo, kNoSpace.
  Result<bool> step(std::uint32_t records, LimitsReader& limits);
  /// The new file gets its map, footer and checksum, and is on the disk. Errors: kIo, kNoSpace.
  Result<void> finish();

  const log::Chunk& source() const { return *source_; }
  /// Once finished.
  const log::ChunkWriter::Finished& finished() const { return *finished_; }
  std::uint64_t kept() const { return kept_; }
  std::uint64_t discarded() const { return discarded_; }

 private:
  Result<void> take(const log::LogRecord& record, const LimitsReader::Key& key,
                    LimitsReader& limits);
  ChunkRewrite(std::shared_ptr<const log::Chunk> chunk, log::ChunkScanner scanner,
               log::ChunkWriter writer, const RunRules& rules, Log& out);

  std::shared_ptr<const log::Chunk> source_;
  log::ChunkScanner scanner_;
  std::optional<log::ChunkChecksum> checksum_;
  log::ChunkWriter writer_;
  RunRules rules_;
  Log* out_;
  std::optional<log::ChunkWriter::Finished> finished_;
  std::uint64_t kept_ = 0;
  std::uint64_t discarded_ = 0;
};

/// The error for a record whose event number is negative although it decides.
Error without_number(std::string_view stream, LogPosition position, EventNumber number);

/// Bytes of records after which a step ends: a stop is never far away.
inline constexpr std::size_t kMostCopiedAtOnce = std::size_t{2} << 20U;

/// The header of a new scavenged chunk for [start, end].
log::ChunkHeader scavenged_header(const log::TransactionLog& log, ChunkNumber start,
                                  ChunkNumber end, const Uuid& chunk_id);

}  // namespace verger::scavenge
