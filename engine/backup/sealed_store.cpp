#include "engine/backup/sealed_store.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/backup/detail/sealed_reader.h"
#include "engine/backup/detail/sealed_writer.h"

namespace verger::backup {
namespace {

/// Blobs and documents are no names of each other.
std::string sealed_name_of(const Sha256Digest& stored_name) {
  return "blob " + to_hex(stored_name);
}
std::string sealed_name_of(std::string_view document) {
  return "document " + std::string(document);
}

class OpenedBlob final : public BlobReader {
 public:
  /// `where`: for messages.
  OpenedBlob(detail::SealedReader reader, std::uint64_t stored_size, std::string where)
      : reader_(std::move(reader)), stored_size_(stored_size), where_(std::move(where)) {}
  [[nodiscard]] std::uint64_t size() const override { return reader_.size(); }
  [[nodiscard]] std::uint64_t stored_size() const override { return stored_size_; }
  Result<void> read_exact(std::uint64_t offset, MutableBytes into) const override {
    const auto read = reader_.read_exact(offset, into);
    return read ? read : read.error().within(where_);
  }

 private:
  detail::SealedReader reader_;
  std::uint64_t stored_size_;
  std::string where_;
};

}  // namespace

/// Seals, or passes on; which one is known with the first bytes: content that begins as a sealed
/// object does is sealed in any case, so that nothing else is taken for one.
class SealedStore::Writer final : public BlobWriter {
 public:
  /// `by_digest`: commit() is given the content's digest.
  Writer(SealedStore& store, std::unique_ptr<BlobWriter> inner, bool by_digest)
      : store_(store), inner_(std::move(inner)), by_digest_(by_digest) {
    if (store.seals()) {
      start_sealing();
    }
  }

  Result<void> append(ByteView bytes) override {
    if (sealer_) {
      return sealer_->append(bytes);
    }
    if (passes_) {
      return inner_->append(bytes);
    }
    append_bytes(beginning_, bytes);
    return beginning_.size() < detail::kSealedMagic.size() ? Result<void>() : decide();
  }

  Result<void> commit(const Sha256Digest& digest) override {
    if (!sealer_ && !passes_) {
      VERGER_RETURN_IF_ERROR(decide());
    }
    const auto stored = by_digest_ ? store_.stored_name(digest) : digest;
    if (sealer_) {
      VERGER_RETURN_IF_ERROR(sealer_->finish(sealed_name_of(stored)));
    }
    return inner_->commit(stored);
  }

 private:
  void start_sealing() {
    sealer_.emplace([this](ByteView bytes) { return inner_->append(bytes); }, store_.keys(),
                    store_.sealing_.compression == Compression::kZstd, store_.random_);
  }
  Result<void> decide() {
    const auto beginning = std::move(beginning_);
    if (detail::is_sealed(beginning)) {
      start_sealing();
      return sealer_->append(beginning);
    }
    passes_ = true;
    return beginning.empty() ? Result<void>() : inner_->append(beginning);
  }

  SealedStore& store_;
  std::unique_ptr<BlobWriter> inner_;
  bool by_digest_;
  bool passes_ = false;
  std::optional<detail::SealedWriter> sealer_;
  Bytes beginning_;
};

SealedStore::SealedStore(std::unique_ptr<BlobStore> inner, Sealing sealing, Random& random)
    : inner_(std::move(inner)),
      sealing_(std::move(sealing)),
      random_(random),
      cache_(std::make_shared<detail::SegmentCache>()) {
  if (sealing_.keys) {
    blob_names_ = derive_key(sealing_.keys->name_key(), {}, "verger backup blob names 1");
  }
}
SealedStore::~SealedStore() = default;

Sha256Digest SealedStore::stored_name(const Sha256Digest& digest) const {
  return sealing_.keys ? keyed_digest(blob_names_, digest) : digest;
}

Result<std::unique_ptr<BlobWriter>> SealedStore::create_blob() {
  VERGER_TRY(auto inner, inner_->create_blob());
  return std::make_unique<Writer>(*this, std::move(inner), /*by_digest=*/true);
}

Result<std::unique_ptr<BlobWriter>> SealedStore::create_stored() {
  VERGER_TRY(auto inner, inner_->create_blob());
  return std::make_unique<Writer>(*this, std::move(inner), /*by_digest=*/false);
}

Result<std::unique_ptr<BlobReader>> SealedStore::open_blob(const Sha256Digest& digest) {
  return open_stored(stored_name(digest));
}

Result<std::unique_ptr<BlobReader>> SealedStore::open_stored(const Sha256Digest& stored) {
  VERGER_TRY(auto object, inner_->open_blob(stored));
  const auto where = [&] { return fmt::format("{}: blob {}", inner_->name(), to_hex(stored)); };
  Bytes beginning(std::min<std::uint64_t>(object->size(), detail::kSealedHeaderSize));
  VERGER_RETURN_IF_ERROR(object->read_exact(0, beginning));
  if (!detail::is_sealed(beginning)) {
    if (sealing_.keys) {
      return detail::not_encrypted().within(where());
    }
    return object;
  }
  const auto size = object->size();
  auto reader = detail::SealedReader::open(
      [object = std::shared_ptr<BlobReader>(std::move(object))](
          std::uint64_t offset, MutableBytes into) { return object->read_exact(offset, into); },
      size, beginning, sealed_name_of(stored), keys(), cache_);
  if (!reader) {
    return reader.error().within(where());
  }
  return std::make_unique<OpenedBlob>(*std::move(reader), size, where());
}

Result<std::optional<std::uint64_t>> SealedStore::blob_size(const Sha256Digest& digest) {
  const auto blob = open_blob(digest);
  // A damaged one is as good as none: what asks for it stores it again.
  if (!blob && (blob.error().code == Errc::kNotFound || blob.error().code == Errc::kCorruption)) {
    return std::optional<std::uint64_t>();
  }
  if (!blob) {
    return blob.error();
  }
  return std::optional((*blob)->size());
}

Result<void> SealedStore::put(std::string_view document, ByteView content) {
  if (!sealing_.keys) {
    return inner_->put(document, content);
  }
  const auto object = detail::seal_content(content, sealed_name_of(document), keys(),
                                           sealing_.compression == Compression::kZstd, random_);
  return inner_->put(document, object);
}

Result<Bytes> SealedStore::get(std::string_view document) {
  VERGER_TRY(auto object, inner_->get(document));
  if (!detail::is_sealed(object) && !sealing_.keys) {
    return object;
  }
  auto content = detail::is_sealed(object)
                     ? detail::open_content(object, sealed_name_of(document), keys())
                     : Result<Bytes>(detail::not_encrypted());
  if (!content) {
    return content.error().within(fmt::format("{}: {}", inner_->name(), document));
  }
  return content;
}

Result<std::string> SealedStore::key_of_blob(const Sha256Digest& stored) {
  VERGER_TRY(const auto object, inner_->open_blob(stored));
  Bytes header(std::min<std::uint64_t>(object->size(), detail::kSealedHeaderSize));
  VERGER_RETURN_IF_ERROR(object->read_exact(0, header));
  if (!detail::is_sealed(header)) {
    return std::string();
  }
  auto id = detail::sealing_key_id(header);
  if (!id) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: blob {}: its header is damaged", inner_->name(), to_hex(stored))};
  }
  return *std::move(id);
}

Result<std::string> SealedStore::key_of_document(std::string_view document) {
  VERGER_TRY(const auto object, inner_->get(document));
  if (!detail::is_sealed(object)) {
    return std::string();
  }
  auto id = detail::sealing_key_id(object);
  if (!id) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: {}: its header is damaged", inner_->name(), document)};
  }
  return *std::move(id);
}

}  // namespace verger::backup
