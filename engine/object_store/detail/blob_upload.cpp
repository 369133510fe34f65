#include "engine/object_store/detail/blob_upload.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/digest.h"
#include "engine/object_store/detail/objects.h"

namespace verger::object_store::detail {

std::string blob_key(const Sha256Digest& digest) {
  const auto hex = to_hex(digest);
  return fmt::format("blobs/{}/{}", hex.substr(0, 2), hex);
}

BlobUpload::~BlobUpload() {
  if (!upload_) {
    return;
  }
  if (!complete_) {
    upload_->abort();
  } else if (const auto removed = remove_object(requests_, key_); !removed) {
    requests_.log().warning(
        "an object that is no longer needed stays; deleting backups removes it",
        {{"object", requests_.name_of(key_)}, {"problem", removed.error().message}});
  }
}

std::size_t BlobUpload::part_size() const {
  // S3 takes 10,000 parts: of 16 MiB at first, and larger ones later, they are 859 GiB.
  constexpr std::size_t kPartsOfOneSize = 1'000;
  const auto parts = upload_ ? upload_->parts() : 0;
  return requests_.settings().part_size * (1 + parts / kPartsOfOneSize);
}

Result<void> BlobUpload::append(ByteView bytes) {
  while (!bytes.empty()) {
    // A full part is sent when more follows it: content of one part needs no upload in parts.
    if (part_.size() == part_size()) {
      VERGER_RETURN_IF_ERROR(send_part());
    }
    const auto more = bytes.first(std::min(bytes.size(), part_size() - part_.size()));
    append_bytes(part_, more);
    bytes = bytes.subspan(more.size());
  }
  return {};
}

Result<void> BlobUpload::send_part() {
  if (!upload_) {
    VERGER_TRY(auto begun, Upload::begin(requests_, key_));
    upload_ = std::move(begun);
  }
  VERGER_RETURN_IF_ERROR(upload_->add(part_));
  part_.clear();
  return {};
}

Result<void> BlobUpload::commit(const Sha256Digest& digest) {
  if (!upload_) {
    VERGER_RETURN_IF_ERROR(put_object(requests_, blob_key(digest), part_));
    part_ = {};
    return {};
  }
  VERGER_RETURN_IF_ERROR(send_part());
  part_ = {};
  VERGER_RETURN_IF_ERROR(upload_->complete());
  complete_ = true;
  // Over what is there already, too: if that was damaged, it is sound now.
  return copy_object(requests_, key_, blob_key(digest), upload_->size());
}

}  // namespace verger::object_store::detail
