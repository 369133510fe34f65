#include "engine/backup/detail/file_copy.h"

#include <algorithm>

namespace verger::backup::detail {

Result<FileCopy> FileCopy::begin(BlobStore& store, ReadAt read, std::uint64_t size,
                                 ReadOnce cache) {
  VERGER_TRY(auto writer, store.create_blob());
  return FileCopy(std::move(writer), std::move(read), size, std::move(cache));
}

Result<bool> FileCopy::step(std::uint64_t most) {
  std::uint64_t done = 0;
  while (at_ < size_ && (done == 0 || done < most)) {
    const auto part = std::min(kBlockSize, size_ - at_);
    buffer_.resize(part);
    cache_.before_read();
    VERGER_RETURN_IF_ERROR(read_(at_, buffer_));
    hash_.update(buffer_);
    VERGER_RETURN_IF_ERROR(writer_->append(buffer_));
    at_ += part;
    cache_.read_to(at_);
    done += part;
  }
  if (at_ < size_) {
    return false;
  }
  digest_ = hash_.finish();
  VERGER_RETURN_IF_ERROR(writer_->commit(digest_));
  writer_.reset();
  buffer_ = {};
  return true;
}

Result<Sha256Digest> store_bytes(BlobStore& store, ByteView bytes) {
  const auto digest = sha256(bytes);
  VERGER_TRY(const auto writer, store.create_blob());
  VERGER_RETURN_IF_ERROR(writer->append(bytes));
  VERGER_RETURN_IF_ERROR(writer->commit(digest));
  return digest;
}

}  // namespace verger::backup::detail
