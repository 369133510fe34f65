#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "engine/backup/blob_store.h"
#include "engine/backup/detail/page_cache.h"
#include "engine/backup/detail/restore_place.h"
#include "engine/base/digest.h"
#include "engine/base/file_system.h"

namespace verger::backup::detail {

/// A file of a generation on its way from the store to where it waits, or being read again in
/// place: in pieces, and compared with its SHA-256. Owns the files it has open. The file system
/// outlives it, a store until a copy is done. One thread at a time.
class FileRestore {
 public:
  /// Copies: `to` appears once all its bytes are on the disk and have their SHA-256; until then
  /// they are in `<to>.part`. Errors: kCorruption (the content has another size), kIo, the store's.
  static Result<FileRestore> copy(FileSystem& files, BlobStore& store, const NewFile& file,
                                  const Path& to);
  /// Reads `at` again. Errors: kNotFound, kCorruption (it has another size), kIo.
  static Result<FileRestore> compare(FileSystem& files, const NewFile& file, const Path& at);

  /// Goes on with up to `most` bytes, at least a block; true once it is done. Errors: kCorruption
  /// (another SHA-256), kNoSpace, kIo, the store's.
  Result<bool> step(std::uint64_t most);
  /// What copying all of it transfers from the store.
  [[nodiscard]] std::uint64_t stored_size() const { return content_ ? content_->stored_size() : 0; }
  /// Bytes since the last call.
  [[nodiscard]] std::uint64_t take_done() { return at_ - std::exchange(counted_, at_); }

 private:
  FileRestore(FileSystem& files, const NewFile& file, Path to)
      : files_(&files), entry_(file.entry), own_(file.content), to_(std::move(to)) {}

  Result<void> read();
  Result<void> end();

  FileSystem* files_;
  BackedUpFile entry_;
  std::optional<Bytes> own_;
  Path to_;
  bool copies_ = false;
  std::unique_ptr<BlobReader> content_;
  std::unique_ptr<File> file_;
  ReadOnce cache_;
  std::uint64_t at_ = 0;
  std::uint64_t counted_ = 0;
  Sha256 hash_;
  Bytes buffer_;
};

/// Whether `at` is there and has the content of `file`: all of it is read. Error: kIo.
Result<bool> has_content(FileSystem& files, const NewFile& file, const Path& at);

}  // namespace verger::backup::detail
