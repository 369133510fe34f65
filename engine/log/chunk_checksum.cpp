#include "engine/log/chunk_checksum.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "engine/base/assert.h"
#include "engine/log/detail/limits.h"
#include "engine/log/detail/wrong_checksum.h"

namespace verger::log {
namespace {

constexpr std::size_t kPieceSize = 256UZ * 1024;
constexpr std::chrono::milliseconds kBetweenPauses(20);

}  // namespace

ChunkChecksum::ChunkChecksum(std::shared_ptr<const Chunk> chunk, bool in_background)
    : chunk_(std::move(chunk)),
      background_(in_background ? std::make_unique<BackgroundMd5>() : nullptr) {
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
  const auto computed = background_ != nullptr ? background_->finish() : md5_.finish();
  return computed == chunk_->footer()->md5 ? Result<void>()
                                           : detail::wrong_checksum(*chunk_, computed);
}

ChunkVerification::ChunkVerification(std::shared_ptr<const Chunk> chunk)
    : chunk_(std::move(chunk)), thread_([this](const std::stop_token& stop) {
        auto outcome = chunk_->verify_md5([&stop] {
          return stop.stop_requested() ? Result<void>(Error{Errc::kCancelled, "not waited for"})
                                       : Result<void>();
        });
        const std::lock_guard lock(mutex_);
        outcome_ = std::move(outcome);
        ended_.notify_all();
      }) {}

Result<void> ChunkVerification::finish(const std::function<Result<void>()>& pause) {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetweenPauses, [this] { return outcome_.has_value(); })) {
    VERGER_RETURN_IF_ERROR(pause());
  }
  return *outcome_;
}

}  // namespace verger::log
