#include "engine/log/detail/chunk_output.h"

#include <algorithm>

#include "engine/base/writeback.h"
#include "engine/log/detail/limits.h"

namespace verger::log::detail {
namespace {

constexpr std::uint64_t kWritebackSize = std::uint64_t{8} << 20U;

}  // namespace

Result<void> ChunkOutput::rehash() {
  hash_ = Md5();
  background_ = hasher_ ? std::make_unique<BackgroundMd5>(hasher_) : nullptr;
  Bytes part(static_cast<std::size_t>(std::min<std::uint64_t>(kBufferSize, written_)));
  for (std::uint64_t at = 0; at < written_;) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), written_ - at));
    VERGER_RETURN_IF_ERROR(file_->read_exact(at, MutableBytes(part).first(size)));
    hash(ByteView(part).first(size));
    at += size;
  }
  return {};
}

Result<void> ChunkOutput::append(ByteView bytes) {
  if (buffer_.size() + bytes.size() > kBufferSize) {
    VERGER_RETURN_IF_ERROR(flush());
  }
  if (bytes.size() > kBufferSize) {
    VERGER_RETURN_IF_ERROR(write(bytes));
  } else {
    append_bytes(buffer_, bytes);
  }
  return {};
}

Result<void> ChunkOutput::flush() {
  if (buffer_.empty()) {
    return {};
  }
  if (!background_) {
    VERGER_RETURN_IF_ERROR(write(buffer_));
    buffer_.clear();
    return {};
  }
  VERGER_RETURN_IF_ERROR(write_through(buffer_));
  background_->take(buffer_);
  return {};
}

/// Hashed in large pieces: by the record it would cost as much again as the rest of appending.
Result<void> ChunkOutput::write(ByteView bytes) {
  VERGER_RETURN_IF_ERROR(write_through(bytes));
  hash(bytes);
  return {};
}

/// The disk begins to write long before the sync, which comes when the chunk is complete.
Result<void> ChunkOutput::write_through(ByteView bytes) {
  VERGER_RETURN_IF_ERROR(file_->write_at(written_, bytes));
  written_ += bytes.size();
  if (written_ - on_its_way_ >= kWritebackSize) {
    start_writeback(*file_, on_its_way_, written_ - on_its_way_);
    on_its_way_ = written_;
  }
  return {};
}

void ChunkOutput::hash(ByteView bytes) {
  if (background_) {
    background_->update(bytes);
  } else {
    hash_.update(bytes);
  }
}

Result<ChunkOutput::Completed> ChunkOutput::complete(ChunkFooter footer) {
  const auto file_size = align_chunk_file(offset() + kChunkFooterSize);
  VERGER_RETURN_IF_ERROR(append(Bytes(file_size - kChunkFooterSize - offset())));
  VERGER_RETURN_IF_ERROR(flush());
  const auto without_hash = encode_chunk_footer(footer);
  hash(ByteView(without_hash).first(without_hash.size() - footer.md5.size()));
  footer.md5 = background_ ? background_->finish() : hash_.finish();
  background_.reset();
  VERGER_RETURN_IF_ERROR(file_->write_at(written_, encode_chunk_footer(footer)));
  return Completed{footer, file_size};
}

}  // namespace verger::log::detail
