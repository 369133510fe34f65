#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/random.h"

namespace verger::verify {

/// The files of a database beside its running server, as they were at one moment, for
/// VerifyDatabaseJob: read, and not written. Index before checkpoints before log, so that the index
/// has nothing that the log lacks. Tables stay open, so a merge takes none away; small files, and
/// the chunk that is being written, are copies. Completed chunks are read in place. Every other
/// path is one of the file system below, for temporary files. Safe from any thread once made.
class RunningFiles final : public FileSystem {
 public:
  /// `below` outlives it. `scratch` gets the copy of one chunk, and is made when missing. Errors:
  /// kUnavailable (the files change faster than they can be looked at: try again), kUnsupported
  /// (transformed chunks; older ones are in an archive), and those of reading.
  static Result<std::unique_ptr<RunningFiles>> open(FileSystem& below, const Path& directory,
                                                    const Path& index_directory,
                                                    const Path& scratch, Random& random);
  ~RunningFiles() override;

  /// kConflict: chunk files were replaced. Who reads holds them open, so that their space is in use
  /// until then.
  Result<void> chunks_in_place();
  /// After all was read. kConflict: chunk files were replaced or the log was cut meanwhile, so what
  /// was found may be none.
  Result<void> still_whole();
  /// Of files that are kept open and are no longer in their place: their space is in use until this
  /// object is gone.
  [[nodiscard]] std::uint64_t held_bytes();
  /// Of the index tables.
  [[nodiscard]] std::uint64_t table_bytes() const;

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override;
  Result<bool> exists(const Path& path) override;
  Result<std::uint64_t> file_size(const Path& path) override;
  Result<std::vector<DirectoryEntry>> list(const Path& directory) override;
  Result<void> rename(const Path& from, const Path& to) override;
  Result<void> remove(const Path& path) override;
  Result<void> make_directories(const Path& path) override;
  Result<void> sync_directory(const Path& directory) override;
  Result<void> set_read_only(const Path& path, bool read_only) override;
  Result<DiskSpace> space(const Path& path) override;
  Result<std::unique_ptr<FileLock>> lock(const Path& path) override;

 private:
  /// One file as it was: in memory, open, or in its place.
  struct Kept {
    std::shared_ptr<const Bytes> content{};
    std::shared_ptr<File> file{};
    std::uint64_t size = 0;
  };

  RunningFiles(FileSystem& below, Path directory, Path index_directory, Path scratch)
      : below_(below),
        directory_(std::move(directory)),
        index_directory_(std::move(index_directory)),
        scratch_(std::move(scratch)) {}

  Result<void> keep_index();
  Result<bool> keep_tables();
  Result<void> keep_content(const Path& path);
  Result<void> keep_open(const Path& path);
  Result<void> keep_log(Random& random);
  Result<void> copy_active_chunk(const Path& path, std::int64_t bytes, Random& random);
  [[nodiscard]] std::int64_t checkpoint(const char* name, std::int64_t missing) const;
  /// True for what is directly in one of the directories that are kept.
  [[nodiscard]] bool is_kept_place(const Path& path) const;
  [[nodiscard]] const Kept* find(const Path& path) const;
  [[nodiscard]] Result<void> check_outside(const Path& path) const;

  FileSystem& below_;
  Path directory_;
  Path index_directory_;
  Path scratch_;
  Path copy_;    ///< of the chunk that was being written; empty: there is none
  Path copied_;  ///< whose copy it is
  std::uint64_t copied_to_ = 0;
  std::map<Path, Kept> kept_;       ///< by normal path
  std::atomic<bool> gone_ = false;  ///< a file was not in its place any longer
};

}  // namespace verger::verify
