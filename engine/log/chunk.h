#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/base/types.h"
#include "engine/log/record.h"

namespace verger {
class Md5Thread;
}

namespace verger::log {

inline constexpr std::int32_t kChunkHeaderSize = 128;
inline constexpr std::int32_t kChunkFooterSize = 128;
inline constexpr std::int32_t kDefaultChunkSize = 256 * 1024 * 1024;

/// The first 128 bytes of a chunk file (docs/formats/chunk.md).
struct ChunkHeader {
  std::uint8_t min_compatible_version = 3;
  std::uint8_t version = 4;  ///< as stored; 0 means "same as min_compatible_version"
  std::int32_t chunk_size = kDefaultChunkSize;
  ChunkNumber start;
  ChunkNumber end;
  bool scavenged = false;
  Uuid chunk_id;
  std::uint8_t transform_type = 0;

  [[nodiscard]] std::uint8_t effective_version() const {
    return version == 0 ? min_compatible_version : version;
  }
  [[nodiscard]] LogPosition start_position() const {
    return LogPosition(std::int64_t{start.value()} * chunk_size);
  }
  [[nodiscard]] LogPosition end_position() const {
    return LogPosition((std::int64_t{end.value()} + 1) * chunk_size);
  }
};

/// The last 128 bytes of a completed chunk file.
struct ChunkFooter {
  bool completed = false;
  bool map_12_bytes = true;
  std::int32_t physical_data_size = 0;
  std::int64_t logical_data_size = 0;
  std::int32_t map_size = 0;
  Md5Digest md5{};
};

/// Errors: kCorruption, kUnsupported (newer format version, transformed chunk).
Result<ChunkHeader> decode_chunk_header(ByteView bytes);
std::array<std::byte, kChunkHeaderSize> encode_chunk_header(const ChunkHeader& header);
Result<ChunkFooter> decode_chunk_footer(ByteView bytes);
std::array<std::byte, kChunkFooterSize> encode_chunk_footer(const ChunkFooter& footer);

/// One entry of a scavenged chunk's position map.
struct PosmapEntry {
  std::int32_t actual = 0;  ///< offset in the data section
  std::int64_t local = 0;   ///< log position relative to the chunk's start
};

/// "chunk-000012.000003"
std::string chunk_file_name(ChunkNumber start, int version);
struct ChunkFileName {
  ChunkNumber start;
  int version = 0;
};
/// nullopt for every name that is not exactly of that form.
std::optional<ChunkFileName> parse_chunk_file_name(std::string_view name);

/// A record read from a chunk, with the bytes its views point into.
struct LogRecord {
  Record record;
  /// Length prefix, record, length suffix.
  ByteView framed;
  /// Where reading continues: the next record's position is at or after it.
  LogPosition next;
  /// Offset of the length prefix in the chunk file.
  std::uint64_t file_offset = 0;

  [[nodiscard]] LogPosition position() const {
    const auto* most = prepare();
    return most != nullptr ? most->position : position_of(record);
  }
  [[nodiscard]] const Prepare* prepare() const { return std::get_if<Prepare>(&record); }
};

/// One live chunk file, open for reading. Safe from any thread. A file replaced by a newer version
/// stays readable while the Chunk is held (whose file system must live longer). The active
/// chunk grows: its `data_size()` is what the writer has published (flushed).
class Chunk {
 public:
  struct State;
  /// Opens a completed chunk: checks header, footer and sizes, not the MD5. The posmap is read on
  /// first use. Errors: kCorruption, kUnsupported, kIo, naming file and offset.
  static Result<std::shared_ptr<Chunk>> open_completed(FileSystem& files, const Path& path);
  /// Opens the active chunk, whose footer is not looked at; `data_size` from writer.chk.
  static Result<std::shared_ptr<Chunk>> open_active(FileSystem& files, const Path& path,
                                                    std::int64_t data_size);
  ~Chunk();

  const ChunkHeader& header() const;
  /// nullopt for the active chunk.
  std::optional<ChunkFooter> footer() const;
  const Path& path() const;
  int version() const;
  bool completed() const { return footer().has_value(); }
  ChunkNumber start() const { return header().start; }
  ChunkNumber end() const { return header().end; }
  LogPosition start_position() const { return header().start_position(); }
  LogPosition end_position() const { return header().end_position(); }
  /// Bytes of records in the file.
  std::int64_t data_size() const;
  std::uint64_t file_size() const;

  /// The record that starts at `position`. `buffer` holds the bytes of the result.
  /// Errors: kNotFound (scavenged away, or beyond the end), kCorruption, kIo.
  Result<LogRecord> read(LogPosition position, Bytes& buffer) const;
  /// The first record at or after `position`; nullopt at the end of the chunk's data.
  Result<std::optional<LogRecord>> read_at_or_after(LogPosition position, Bytes& buffer) const;
  /// The last record that starts before `position`; nullopt at the chunk's beginning.
  Result<std::optional<LogRecord>> read_before(LogPosition position, Bytes& buffer) const;
  /// True when a record starts there: a look into the posmap, or for an unscavenged chunk a read
  /// of the framing.
  Result<bool> has_record_at(LogPosition position) const;
  /// The whole position map; empty for an unscavenged chunk.
  Result<std::vector<PosmapEntry>> posmap() const;
  /// `size` raw bytes of the file, for replication, copying and hashing.
  Result<void> read_raw(std::uint64_t offset, MutableBytes into) const;
  /// Recomputes the MD5 and compares it with the footer. Errors: kCorruption, kIo, those of
  /// `pause`, which is called for each megabyte. Blocks: call it from a job or a pool.
  Result<void> verify_md5(const std::function<Result<void>()>& pause = {}) const;

 private:
  friend class ChunkAccess;
  explicit Chunk(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Reads a chunk's records in order through a large buffer: the fast way over a whole chunk.
class ChunkScanner {
 public:
  /// Starts with the first record at or after `from`.
  static Result<ChunkScanner> open(std::shared_ptr<const Chunk> chunk, LogPosition from);
  ChunkScanner(ChunkScanner&&) noexcept;
  ChunkScanner& operator=(ChunkScanner&&) noexcept;
  ~ChunkScanner();
  /// nullopt at the end of the chunk's data. The views are valid until the next call.
  Result<std::optional<LogRecord>> next();
  /// The next records, at most `most` of them; none at the end of the chunk's data. The views are
  /// valid until the next call.
  Result<std::span<const LogRecord>> next_batch(std::size_t most);

  /// Reads up to `size` bytes on, and returns them: for a caller that hashes what is read. Empty at
  /// the end of the chunk's data. The views of earlier records are no longer valid.
  Result<ByteView> read_ahead(std::size_t size);
  /// The next records, at most `most` of them, whose bytes have been read; none where more has to
  /// be read first, or nothing follows.
  Result<std::span<const LogRecord>> next_read(std::size_t most);

 private:
  struct State;
  explicit ChunkScanner(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Writes a new completed chunk file (scavenge, merge) under a temporary name. Destroying it before
/// finish() removes the file.
class ChunkWriter {
 public:
  /// Creates `directory`/`name` (which ends in ".tmp"). `hasher`: computes the MD5 instead of the
  /// calling thread; with `writes_behind` it writes, too: an error may then come some megabytes
  /// later, and one of the last of them from finish().
  static Result<ChunkWriter> create(FileSystem& files, const Path& directory, std::string name,
                                    const ChunkHeader& header,
                                    std::shared_ptr<Md5Thread> hasher = nullptr,
                                    bool writes_behind = false);
  ChunkWriter(ChunkWriter&&) noexcept;
  ChunkWriter& operator=(ChunkWriter&&) noexcept;
  ~ChunkWriter();
  /// Appends one framed record that keeps its log position; a posmap entry is noted.
  /// Positions must ascend. Errors: kIo, kNoSpace, kInvalidArgument (data would exceed i32).
  Result<void> append(LogPosition position, ByteView framed);
  /// Appends whole records as they follow each other in the file of a scavenged chunk that begins
  /// at `start`: `records` are their entries in its posmap, `framed` all their bytes. Of a
  /// scavenged chunk only. Errors: as of append().
  Result<void> append_copied(LogPosition start, std::span<const PosmapEntry> records,
                             ByteView framed);
  std::int64_t data_size() const;
  /// Posmap, padding to 4096, footer with MD5, sync. The file is complete when this returns.
  struct Finished {
    Path path;
    ChunkHeader header;
    ChunkFooter footer;
    std::uint64_t file_size = 0;
  };
  Result<Finished> finish();

 private:
  struct State;
  explicit ChunkWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace verger::log
