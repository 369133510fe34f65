#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "engine/verify/detail/chunk_file_work.h"

namespace verger::verify::detail {

/// The chunk files and checkpoints of a directory: which files are live, which are missing, and
/// whether the checkpoints agree with each other.
class ChunkFiles {
 public:
  /// `chunk_size` 0: the first chunk tells. All outlive it.
  ChunkFiles(FileSystem& files, const Path& directory, std::int32_t chunk_size, Findings& findings)
      : files_(files),
        directory_(directory),
        given_(chunk_size),
        chunk_size_(chunk_size),
        findings_(findings) {}

  /// Errors: the directory cannot be read; kInvalidArgument (the chunk size that was given is not
  /// that of the files).
  Result<void> find();

  /// To be looked at one by one.
  [[nodiscard]] const std::vector<const ChunkFile*>& live() const { return live_; }
  [[nodiscard]] std::int32_t chunk_size() const { return chunk_size_; }
  /// Where the log ends; nullopt: it is not known, and that was reported.
  [[nodiscard]] std::optional<std::int64_t> writer() const { return writer_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  Result<void> list_files();
  Result<void> check_given() const;
  Result<void> look_at_checkpoints();
  void report_missing(std::int64_t from, std::int64_t to);
  void after_the_end(const ChunkFile& file);

  FileSystem& files_;
  const Path& directory_;
  std::int32_t given_;
  std::int32_t chunk_size_;
  Findings& findings_;
  std::deque<ChunkFile> all_;
  std::vector<const ChunkFile*> live_;
  std::optional<std::int64_t> writer_;
  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace verger::verify::detail
