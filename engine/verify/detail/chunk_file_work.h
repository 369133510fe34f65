#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/log/chunk.h"
#include "engine/verify/detail/hashed_files.h"
#include "engine/verify/findings.h"

namespace verger::verify::detail {

/// A chunk file of a directory, live or not.
struct ChunkFile {
  Path path;
  log::ChunkFileName name;
  std::uint64_t size = 0;
  std::optional<log::ChunkHeader> header;  ///< nullopt: was reported
};

/// Looks at one live chunk file, from header to footer: MD5, framing, records, position map.
class ChunkFileWork final : public HashedFile {
 public:
  /// `file` has its header. `writer`: where the log ends, if that is known. All outlive it.
  ChunkFileWork(FileSystem& files, const ChunkFile& file, std::int32_t chunk_size,
                std::optional<std::int64_t> writer)
      : files_(files), file_(file), chunk_size_(chunk_size), writer_(writer) {}

  ByteView read(std::size_t size) override;
  void look(ExpectedEntries::Part* part) override;
  void end(const Md5Digest& digest) override;
  /// Once it has ended.
  [[nodiscard]] const Findings& findings() const { return findings_; }
  [[nodiscard]] std::uint64_t records() const { return records_; }

 private:
  bool open();
  bool header_fits();
  Result<ByteView> read_on(std::size_t size);
  void records_end_early(const Error& error);
  void look_at(const log::LogRecord& record);
  void end_of_records(ExpectedEntries::Part* part);
  void compare_posmap();

  FileSystem& files_;
  const ChunkFile& file_;
  std::int32_t chunk_size_;
  std::optional<std::int64_t> writer_;
  bool opened_ = false;
  std::shared_ptr<log::Chunk> chunk_;  ///< nullptr: nothing is left to read
  std::uint64_t at_ = 0;               ///< read so far
  std::uint64_t data_end_ = 0;
  std::uint64_t hashed_end_ = 0;              ///< the footer's MD5 is not hashed
  Bytes piece_;                               ///< of what are no records
  std::optional<log::ChunkScanner> scanner_;  ///< until its records end
  std::vector<log::PosmapEntry> places_;      ///< of a scavenged chunk
  std::uint64_t expected_offset_ = log::kChunkHeaderSize;
  std::optional<Error> unread_;  ///< reading ended with it
  Findings findings_;
  std::uint64_t records_ = 0;
};

}  // namespace verger::verify::detail
