#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/log/chunk.h"
#include "engine/verify/detail/file_checksum.h"
#include "engine/verify/detail/lanes.h"
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
class ChunkFileWork final : public Work {
 public:
  /// `file` has its header. `writer`: where the log ends, if that is known. All outlive it.
  ChunkFileWork(FileSystem& files, const ChunkFile& file, std::int32_t chunk_size,
                std::optional<std::int64_t> writer)
      : files_(files), file_(file), chunk_size_(chunk_size), writer_(writer) {}

  bool step(std::uint32_t units) override;
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] const Findings& findings() const { return findings_; }
  [[nodiscard]] std::uint64_t records() const { return records_; }

 private:
  enum class Stage : std::uint8_t { kOpen, kChecksum, kRecords, kDone };
  void open();
  bool header_fits();
  void compare_checksum(std::uint32_t units);
  void start_records();
  void read_records(std::uint32_t units);
  void look_at(const log::LogRecord& record);
  void end_of_records();
  void compare_posmap();
  void finish();

  FileSystem& files_;
  const ChunkFile& file_;
  std::int32_t chunk_size_;
  std::optional<std::int64_t> writer_;
  Stage stage_ = Stage::kOpen;
  std::shared_ptr<log::Chunk> chunk_;
  std::optional<FileChecksum> checksum_;
  std::optional<log::ChunkScanner> scanner_;
  std::vector<log::PosmapEntry> places_;  ///< of a scavenged chunk
  std::uint64_t expected_offset_ = log::kChunkHeaderSize;
  Bytes again_;
  Findings findings_;
  std::uint64_t records_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace verger::verify::detail
