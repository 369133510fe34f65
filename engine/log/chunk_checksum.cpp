#include "engine/log/chunk_checksum.h"

#include <algorithm>
#include <array>
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
  const auto computed = background_ != nullptr ? background_->finish() : md5_.finish();
  return computed == chunk_->footer()->md5 ? Result<void>()
                                           : detail::wrong_checksum(*chunk_, computed);
}

ChunkVerification::ChunkVerification(std::vector<std::shared_ptr<const Chunk>> chunks)
    : chunks_(std::move(chunks)),
      outcomes_(chunks_.size()),
      thread_([this](const std::stop_token& stop) { compare(stop); }) {
  VERGER_ASSERT(!chunks_.empty() && chunks_.size() <= kMostChunks);
}

std::size_t ChunkVerification::number_of(const Chunk& chunk) const {
  const auto found = std::ranges::find(chunks_, &chunk, &std::shared_ptr<const Chunk>::get);
  return static_cast<std::size_t>(found - chunks_.begin());
}

bool ChunkVerification::includes(const Chunk& chunk) const {
  return number_of(chunk) < chunks_.size();
}

void ChunkVerification::note(std::size_t chunk, Result<void> outcome) {
  const std::lock_guard lock(mutex_);
  outcomes_[chunk] = std::move(outcome);
  ended_.notify_all();
}

void ChunkVerification::compare(const std::stop_token& stop) {
  struct Lane {
    std::uint64_t at = 0;
    std::uint64_t end = 0;
    Bytes piece;
    bool ended = false;
  };
  std::vector<Lane> lanes(chunks_.size());
  Md5Lanes hashes;
  auto left = lanes.size();
  while (left > 0 && !stop.stop_requested()) {
    std::array<ByteView, kMostChunks> pieces{};
    for (std::size_t n = 0; n < lanes.size(); ++n) {
      auto& lane = lanes[n];
      if (lane.ended) {
        continue;
      }
      lane.end = chunks_[n]->file_size() - sizeof(Md5Digest);
      lane.piece.resize(
          static_cast<std::size_t>(std::min<std::uint64_t>(kPieceSize, lane.end - lane.at)));
      if (auto read = chunks_[n]->read_raw(lane.at, lane.piece); !read) {
        note(n, std::move(read));
        lane.ended = true;
        --left;
        continue;
      }
      lane.at += lane.piece.size();
      pieces[n] = lane.piece;
    }
    hashes.update(std::span(pieces).first(lanes.size()));
    for (std::size_t n = 0; n < lanes.size(); ++n) {
      auto& lane = lanes[n];
      if (!lane.ended && lane.at == lane.end) {
        const auto computed = hashes.finish(n);
        note(n, computed == chunks_[n]->footer()->md5
                    ? Result<void>()
                    : detail::wrong_checksum(*chunks_[n], computed));
        lane.ended = true;
        --left;
      }
    }
  }
}

Result<void> ChunkVerification::finish(const Chunk& chunk,
                                       const std::function<Result<void>()>& pause) {
  const auto n = number_of(chunk);
  VERGER_ASSERT(n < chunks_.size());
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetweenPauses, [&] { return outcomes_[n].has_value(); })) {
    VERGER_RETURN_IF_ERROR(pause());
  }
  return *outcomes_[n];
}

}  // namespace verger::log
