#pragma once

#include "engine/backup/blob_store.h"
#include "engine/base/file_system.h"
#include "engine/base/random.h"

namespace verger::backup {

/// A store in a directory, local or NFS (docs/operations/backup.md, "Repository"): content in
/// `blobs/ab/<sha256>`, documents under their names, what is being written in `tmp/`.
/// A blob appears by a rename once its bytes are on the disk.
class DirectoryStore final : public BlobStore {
 public:
  /// Changes nothing. `files` and `random` outlive it.
  DirectoryStore(FileSystem& files, Path directory, Random& random);
  ~DirectoryStore() override;

  [[nodiscard]] std::string name() const override { return directory_.string(); }
  Result<std::unique_ptr<BlobWriter>> create_blob() override;
  Result<std::optional<std::uint64_t>> blob_size(const Sha256Digest& digest) override;
  Result<std::unique_ptr<BlobReader>> open_blob(const Sha256Digest& digest) override;
  Result<std::vector<StoredBlob>> list_blobs() override;
  Result<void> remove_blob(const Sha256Digest& name) override;
  Result<std::uint64_t> remove_leftovers() override;
  Result<void> put(std::string_view document, ByteView content) override;
  Result<Bytes> get(std::string_view document) override;
  Result<std::vector<std::string>> list(std::string_view folder) override;
  Result<void> remove(std::string_view document) override;

  /// Where the content lies, for messages and tests.
  [[nodiscard]] Path blob_path(const Sha256Digest& digest) const;

 private:
  FileSystem& files_;
  Path directory_;
  Random& random_;
};

}  // namespace verger::backup
