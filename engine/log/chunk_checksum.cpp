#include "engine/log/chunk_checksum.h"

#include <algorithm>
#include <utility>

#include "engine/base/assert.h"
#include "engine/log/detail/limits.h"
#include "engine/log/detail/wrong_checksum.h"

namespace verger::log {
namespace {

constexpr std::size_t kPieceSize = 256UZ * 1024;

}  // namespace

ChunkChecksum::ChunkChecksum(std::shared_ptr<const Chunk> chunk, bool in_background)
    : ChunkChecksum(std::move(chunk), in_background ? std::make_shared<Md5Thread>() : nullptr) {}

ChunkChecksum::ChunkChecksum(std::shared_ptr<const Chunk> chunk, std::shared_ptr<Md5Thread> hasher)
    : chunk_(std::move(chunk)),
      background_(hasher == nullptr ? nullptr
                                    : std::make_unique<BackgroundMd5>(std::move(hasher))) {
  VERGER_ASSERT(chunk_->completed());
}
ChunkChecksum::~ChunkChecksum() = default;
ChunkChecksum::ChunkChecksum(ChunkChecksum&&) noexcept = default;
ChunkChecksum& ChunkChecksum::operator=(ChunkChecksum&&) noexcept = default;

void ChunkChecksum::hash(ByteView bytes) {
  if (background_ != nullptr) {
    background_->update(bytes);
  } else {
    md5_.update(bytes);
  }
}

Result<void> ChunkChecksum::add(const LogRecord& record) {
  if (record.file_offset != at_) {
    VERGER_RETURN_IF_ERROR(read_to(record.file_offset));
  }
  append_bytes(waiting_, record.framed);
  at_ += record.framed.size();
  if (waiting_.size() >= kPieceSize) {
    hash(waiting_);
    waiting_.clear();
  }
  return {};
}

Result<void> ChunkChecksum::read_to(std::uint64_t end) {
  VERGER_ASSERT(at_ <= end);
  hash(waiting_);
  waiting_.clear();
  Bytes block(static_cast<std::size_t>(std::min<std::uint64_t>(detail::kBufferSize, end - at_)));
  while (at_ < end) {
    const auto part = MutableBytes(block).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), end - at_)));
    VERGER_RETURN_IF_ERROR(chunk_->read_raw(at_, part));
    hash(part);
    at_ += part.size();
  }
  return {};
}

Result<void> ChunkChecksum::finish() {
  const auto& stored = chunk_->footer()->md5;
  VERGER_RETURN_IF_ERROR(read_to(chunk_->file_size() - stored.size()));
  Md5Digest computed;
  if (background_ != nullptr) {
    VERGER_TRY(computed, background_->finish());
  } else {
    computed = md5_.finish();
  }
  return computed == chunk_->footer()->md5 ? Result<void>()
                                           : detail::wrong_checksum(*chunk_, computed);
}

VerifiedFile verified_file(std::shared_ptr<const Chunk> chunk) {
  const auto& file = *chunk;
  VERGER_ASSERT(file.completed());
  return {.object = std::move(chunk),
          .size = file.file_size() - sizeof(Md5Digest),
          .read = [&file](std::uint64_t offset,
                          MutableBytes into) { return file.read_raw(offset, into); },
          .compare = [&file](const Md5Digest& computed) -> Result<void> {
            if (computed != file.footer()->md5) {
              return detail::wrong_checksum(file, computed);
            }
            return {};
          }};
}

}  // namespace verger::log
