#pragma once

#include <memory>
#include <optional>

#include "engine/backup/blob_store.h"
#include "engine/backup/key_file.h"
#include "engine/backup/repository_config.h"
#include "engine/base/random.h"

namespace verger::backup {

namespace detail {
class SegmentCache;
}  // namespace detail

/// How content is stored.
struct Sealing {
  Compression compression = Compression::kNone;
  std::optional<KeyRing> keys{};  ///< nullopt: not encrypted
};

/// Stores what it is given in another store, compressed, encrypted, both or as it is
/// (docs/formats/sealed-objects.md). Each object says how it is stored: what was compressed is read
/// with any setting, what is encrypted with the key that it names. With keys, nothing else is
/// accepted: neither names nor sizes of documents are hidden, but all content, and which content a
/// blob has. Every change of a sealed object is found when it is read (kCorruption).
///
/// Errors of reading, beside those of the store: kUnauthorized (no keys, or not the right ones; the
/// message names the key's id), kCorruption.
class SealedStore final : public BlobStore {
 public:
  SealedStore(std::unique_ptr<BlobStore> inner, Sealing sealing, Random& random);
  ~SealedStore() override;

  [[nodiscard]] std::string name() const override { return inner_->name(); }
  Result<std::unique_ptr<BlobWriter>> create_blob() override;
  Result<std::optional<std::uint64_t>> blob_size(const Sha256Digest& digest) override;
  Result<std::unique_ptr<BlobReader>> open_blob(const Sha256Digest& digest) override;
  [[nodiscard]] Sha256Digest stored_name(const Sha256Digest& digest) const override;
  Result<std::vector<StoredBlob>> list_blobs() override { return inner_->list_blobs(); }
  Result<void> remove_blob(const Sha256Digest& name) override { return inner_->remove_blob(name); }
  Result<std::uint64_t> remove_leftovers() override { return inner_->remove_leftovers(); }
  Result<void> put(std::string_view document, ByteView content) override;
  Result<Bytes> get(std::string_view document) override;
  Result<std::vector<std::string>> list(std::string_view folder) override {
    return inner_->list(folder);
  }
  Result<void> remove(std::string_view document) override { return inner_->remove(document); }

  // --- For moving objects from one key to another, by the names that list_blobs() shows ---

  [[nodiscard]] const Sealing& sealing() const { return sealing_; }
  /// The id of the key that an object is encrypted with; empty: with none. Errors: kCorruption (its
  /// beginning is damaged), those of the store.
  Result<std::string> key_of_blob(const Sha256Digest& name);
  Result<std::string> key_of_document(std::string_view document);
  Result<std::unique_ptr<BlobReader>> open_stored(const Sha256Digest& name);
  /// Its commit() takes the stored name.
  Result<std::unique_ptr<BlobWriter>> create_stored();

 private:
  class Writer;
  [[nodiscard]] const KeyRing* keys() const { return sealing_.keys ? &*sealing_.keys : nullptr; }
  [[nodiscard]] bool seals() const {
    return sealing_.keys.has_value() || sealing_.compression != Compression::kNone;
  }

  std::unique_ptr<BlobStore> inner_;
  Sealing sealing_;
  Key256 blob_names_{};  ///< of the name key
  Random& random_;
  std::shared_ptr<detail::SegmentCache> cache_;
};

}  // namespace verger::backup
