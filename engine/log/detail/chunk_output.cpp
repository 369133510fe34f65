#include "engine/log/detail/chunk_output.h"

#include <algorithm>

#include "engine/base/assert.h"
#include "engine/base/writeback.h"
#include "engine/log/detail/limits.h"

namespace verger::log::detail {
namespace {

/// Of what waits to be written, and hashed: several files may have several pieces each.
constexpr std::size_t kPieceSize = std::size_t{256} << 10U;
constexpr std::uint64_t kWritebackSize = std::uint64_t{8} << 20U;

}  // namespace

/// The disk begins to write long before the sync, which comes when the chunk is complete.
Result<void> ChunkOutput::Sink::write(ByteView bytes) {
  VERGER_RETURN_IF_ERROR(file->write_at(written, bytes));
  written += bytes.size();
  if (written - on_its_way >= kWritebackSize) {
    start_writeback(*file, on_its_way, written - on_its_way);
    on_its_way = written;
  }
  return {};
}

Result<void> ChunkOutput::rehash() {
  hash_ = Md5();
  background_ = hasher_ ? std::make_unique<BackgroundMd5>(hasher_) : nullptr;
  Bytes part(static_cast<std::size_t>(std::min<std::uint64_t>(kBufferSize, offset_)));
  for (std::uint64_t at = 0; at < offset_;) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), offset_ - at));
    VERGER_RETURN_IF_ERROR(sink_.file->read_exact(at, MutableBytes(part).first(size)));
    hash(ByteView(part).first(size));
    at += size;
  }
  if (writes_behind_) {
    VERGER_ASSERT(offset_ == 0);
    background_ = std::make_unique<BackgroundMd5>(
        hasher_, [this](ByteView piece) { return sink_.write(piece); });
  }
  return {};
}

Result<void> ChunkOutput::append(ByteView bytes) {
  if (buffer_.size() + bytes.size() > kPieceSize) {
    VERGER_RETURN_IF_ERROR(flush());
  }
  if (bytes.size() > kPieceSize) {
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
  VERGER_RETURN_IF_ERROR(writes_behind_ ? background_->sunk() : sink_.write(buffer_));
  offset_ += buffer_.size();
  background_->take(buffer_);
  return {};
}

/// Hashed in large pieces: by the record it would cost as much again as the rest of appending.
Result<void> ChunkOutput::write(ByteView bytes) {
  VERGER_RETURN_IF_ERROR(writes_behind_ ? background_->sunk() : sink_.write(bytes));
  offset_ += bytes.size();
  hash(bytes);
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
  if (background_) {
    VERGER_TRY(footer.md5, background_->finish());
    background_.reset();
  } else {
    footer.md5 = hash_.finish();
  }
  VERGER_RETURN_IF_ERROR(sink_.file->write_at(offset_, encode_chunk_footer(footer)));
  return Completed{footer, file_size};
}

}  // namespace verger::log::detail
