#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/log/chunk.h"
#include "engine/redaction/record_blanking.h"

namespace verger::redaction::detail {

/// A copy of a completed chunk file with changes in it and the MD5 that then is right. Destroying
/// it before finish() removes the file.
class ChunkCopy {
 public:
  /// Creates `path`. `patches` ascend and do not overlap.
  static Result<std::unique_ptr<ChunkCopy>> start(FileSystem& files,
                                                  std::shared_ptr<const log::Chunk> source,
                                                  const Path& path, std::vector<BytePatch> patches);
  ~ChunkCopy();
  ChunkCopy(const ChunkCopy&) = delete;
  ChunkCopy& operator=(const ChunkCopy&) = delete;

  /// Copies up to `bytes`; true once all is copied, and the source was what its MD5 says.
  /// Errors: kCorruption, kNoSpace, kIo.
  Result<bool> step(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t copied() const { return at_; }
  /// Writes the MD5, syncs, reads all of the file back, and lets go of the source. The file stays
  /// from here on: it is switched in, or remove() is called.
  Result<Md5Digest> finish();
  [[nodiscard]] const Path& path() const { return path_; }
  void remove();

 private:
  ChunkCopy(FileSystem& files, std::shared_ptr<const log::Chunk> source, Path path,
            std::vector<BytePatch> patches);
  void apply_patches(MutableBytes piece);

  FileSystem* files_;
  std::shared_ptr<const log::Chunk> source_;
  Path path_;
  std::unique_ptr<File> file_;
  std::vector<BytePatch> patches_;
  std::size_t next_patch_ = 0;  ///< first that ends behind `at_`
  std::uint64_t at_ = 0;
  std::uint64_t end_;  ///< of what is hashed: all but the MD5
  Bytes buffer_;
  Md5 before_;
  Md5 after_;
  bool kept_ = false;
};

}  // namespace verger::redaction::detail
