#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/backup/blob_store.h"
#include "engine/backup/manifest.h"
#include "engine/base/file_system.h"

namespace verger::backup {
namespace detail {
class StoreProblem;
}

/// A generation as a directory that can be read and not written, straight from the store: what
/// reads databases reads a backup without restoring it. It lies at root(); every other path is one
/// of the file system below, for temporary files. Content is not compared with its SHA-256 here.
/// Safe from any thread.
class GenerationFiles final : public FileSystem {
 public:
  /// `below` and `store` outlive it.
  GenerationFiles(FileSystem& below, BlobStore& store, Manifest manifest);
  ~GenerationFiles() override;

  /// The database directory; the index lies in "index" there.
  [[nodiscard]] const Path& root() const { return root_; }
  /// Why content could not be read, the first time that the store could not be asked: what a reader
  /// takes for damage may be none then.
  [[nodiscard]] std::optional<Error> store_problem() const;

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
  /// nullopt: the path is not in the generation; "" is its root.
  [[nodiscard]] std::optional<std::string> inside(const Path& path) const;
  /// kRefused where any of the paths is in the generation.
  Result<void> check_outside(const Path& path) const;

  FileSystem& below_;
  BlobStore& store_;
  std::shared_ptr<detail::StoreProblem> problem_;
  Manifest manifest_;
  Path root_;
};

}  // namespace verger::backup
