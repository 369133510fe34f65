#include "engine/object_store/s3_store.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/object_store/detail/blob_upload.h"
#include "engine/object_store/detail/objects.h"

namespace verger::object_store {
namespace {

constexpr const char* kBlobsFolder = "blobs/";

class ObjectReader final : public backup::BlobReader {
 public:
  ObjectReader(detail::ReadAhead::Read read, std::uint64_t size, std::size_t most,
               detail::ReadAheadBudget& budget)
      : content_(std::move(read), size, most, budget) {}
  [[nodiscard]] std::uint64_t size() const override { return content_.size(); }
  Result<void> read_exact(std::uint64_t offset, MutableBytes into) const override {
    return content_.read_exact(offset, into);
  }

 private:
  mutable detail::ReadAhead content_;
};

}  // namespace

S3Store::S3Store(S3Settings settings, Random& random, Log& log, detail::Wait wait)
    : random_(random),
      requests_(std::move(settings), random, log, std::move(wait)),
      read_ahead_(requests_.settings().read_ahead_total) {}
S3Store::~S3Store() = default;

Result<std::unique_ptr<backup::BlobWriter>> S3Store::create_blob() {
  return std::make_unique<detail::BlobUpload>(requests_, random_.uuid().to_string());
}

Result<std::optional<std::uint64_t>> S3Store::blob_size(const Sha256Digest& digest) {
  VERGER_TRY(const auto found, detail::look_at_object(requests_, detail::blob_key(digest)));
  return found ? std::optional(found->size) : std::nullopt;
}

Result<std::unique_ptr<backup::BlobReader>> S3Store::open_blob(const Sha256Digest& digest) {
  const auto key = detail::blob_key(digest);
  VERGER_TRY(const auto found, detail::look_at_object(requests_, key));
  if (!found) {
    return Error{Errc::kNotFound, fmt::format("{}: is not there", requests_.name_of(key))};
  }
  return std::make_unique<ObjectReader>(
      [this, key](std::uint64_t offset, MutableBytes into) {
        return detail::read_object(requests_, key, offset, into);
      },
      found->size, requests_.settings().read_ahead, read_ahead_);
}

Result<std::vector<backup::StoredBlob>> S3Store::list_blobs() {
  VERGER_TRY(const auto objects, detail::list_objects(requests_, kBlobsFolder, /*flat=*/false));
  std::vector<backup::StoredBlob> found;
  found.reserve(objects.size());
  for (const auto& object : objects) {
    const auto name = std::string_view(object.key).substr(object.key.rfind('/') + 1);
    if (const auto digest = backup::digest_from_hex(name);
        digest && object.key == detail::blob_key(*digest)) {
      found.push_back({*digest, object.size});
    }
  }
  return found;
}

Result<void> S3Store::remove_blob(const Sha256Digest& name) {
  return detail::remove_object(requests_, detail::blob_key(name));
}

Result<std::uint64_t> S3Store::remove_leftovers() {
  const std::string parts(detail::kPartsFolder);
  for (const auto& folder : {parts, std::string(kBlobsFolder)}) {  // there: copies in parts
    VERGER_TRY(const auto uploads, detail::unfinished_uploads(requests_, folder));
    if (!uploads) {
      requests_.log().warning(
          "the object storage does not list unfinished uploads: set a rule there that removes them",
          {{"store", name()}});
      break;
    }
    for (const auto& upload : *uploads) {
      VERGER_RETURN_IF_ERROR(detail::abort_upload(requests_, upload));
    }
  }
  VERGER_TRY(const auto objects, detail::list_objects(requests_, parts, /*flat=*/true));
  std::uint64_t bytes = 0;
  for (const auto& object : objects) {
    VERGER_RETURN_IF_ERROR(detail::remove_object(requests_, object.key));
    bytes += object.size;
  }
  return bytes;
}

Result<void> S3Store::put(std::string_view document, ByteView content) {
  return detail::put_object(requests_, std::string(document), content);
}

Result<Bytes> S3Store::get(std::string_view document) {
  return detail::get_object(requests_, std::string(document));
}

Result<std::vector<std::string>> S3Store::list(std::string_view folder) {
  const auto start = fmt::format("{}/", folder);
  VERGER_TRY(const auto objects, detail::list_objects(requests_, start, /*flat=*/true));
  std::vector<std::string> names;
  for (const auto& object : objects) {
    if (object.key.size() > start.size()) {  // not the "directory" that some tools make
      names.push_back(object.key.substr(start.size()));
    }
  }
  std::ranges::sort(names);
  return names;
}

Result<void> S3Store::remove(std::string_view document) {
  return detail::remove_object(requests_, std::string(document));
}

}  // namespace verger::object_store
