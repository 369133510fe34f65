#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backup/blob_store.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/object_store/detail/read_ahead.h"
#include "engine/object_store/detail/requests.h"
#include "engine/object_store/s3_settings.h"

namespace verger::object_store {

/// A store in a bucket of S3-compatible object storage, under the names that a directory has
/// (docs/operations/backup.md, "Repository"). Content of more than one part is sent to `tmp/`
/// first, as its name is not known before its end, and copied to its name by the server; nothing is
/// under that name before it is whole.
///
/// Requests that may pass with time are repeated, as the settings say. Further errors of all:
/// kUnavailable (no answer, or the server is busy, after all attempts), kUnauthorized.
class S3Store final : public backup::BlobStore {
 public:
  /// Asks the server nothing. `random` and `log` outlive it. `wait`: how time passes between two
  /// attempts; empty: the thread sleeps.
  S3Store(S3Settings settings, Random& random, Log& log, detail::Wait wait = {});
  ~S3Store() override;

  [[nodiscard]] std::string name() const override { return requests_.name(); }
  Result<std::unique_ptr<backup::BlobWriter>> create_blob() override;
  Result<std::optional<std::uint64_t>> blob_size(const Sha256Digest& digest) override;
  Result<std::unique_ptr<backup::BlobReader>> open_blob(const Sha256Digest& digest) override;
  Result<std::vector<backup::StoredBlob>> list_blobs() override;
  Result<void> remove_blob(const Sha256Digest& name) override;
  Result<std::uint64_t> remove_leftovers() override;
  Result<void> put(std::string_view document, ByteView content) override;
  Result<Bytes> get(std::string_view document) override;
  Result<std::vector<std::string>> list(std::string_view folder) override;
  Result<void> remove(std::string_view document) override;

 private:
  Random& random_;
  detail::S3Requests requests_;
  detail::ReadAheadBudget read_ahead_;
};

}  // namespace verger::object_store
