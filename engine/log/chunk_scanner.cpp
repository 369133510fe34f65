#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "engine/log/chunk.h"
#include "engine/log/detail/chunk_state.h"
#include "engine/log/detail/limits.h"

namespace verger::log {

constexpr std::size_t kFirstBufferSize = 16UZ * 1024;

struct ChunkScanner::State {
  std::shared_ptr<const Chunk> chunk;
  const Chunk::State* file = nullptr;
  std::int64_t actual = 0;  ///< of the next frame
  LogPosition last{-1};     ///< positions must ascend
  Bytes buffer;
  std::size_t begin = 0;  ///< of the next frame in the buffer
  std::size_t filled = 0;
  std::vector<LogRecord> batch;

  /// Is the next record in the buffer, or its length that is impossible?
  [[nodiscard]] bool holds_next() const {
    const auto held = filled - begin;
    if (held < 4) {
      return false;
    }
    const auto size = load_le<std::int32_t>(buffer.data() + begin);
    return size <= 0 || size > kMaxRecordSize ||
           held >= static_cast<std::size_t>(size) + std::size_t{kFramingSize};
  }

  /// At least `wanted` bytes of the chunk's data from `begin` on; `end` is the data's end.
  Result<void> fill(std::size_t wanted, std::int64_t end) {
    if (filled - begin >= wanted) {
      return {};
    }
    std::memmove(buffer.data(), buffer.data() + begin, filled - begin);
    filled -= begin;
    begin = 0;
    // A short look costs a short read; a caller that reads on gets larger ones.
    buffer.resize(
        std::max({buffer.size(), wanted, std::min(4 * buffer.size(), detail::kBufferSize)}));
    const auto in_file = static_cast<std::uint64_t>(actual) + filled;
    const auto size = std::min(buffer.size() - filled,
                               static_cast<std::size_t>(end) - static_cast<std::size_t>(in_file));
    VERGER_RETURN_IF_ERROR(file->file->read_exact(kChunkHeaderSize + in_file,
                                                  MutableBytes(buffer).subspan(filled, size)));
    filled += size;
    return {};
  }
};

ChunkScanner::ChunkScanner(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChunkScanner::ChunkScanner(ChunkScanner&&) noexcept = default;
ChunkScanner& ChunkScanner::operator=(ChunkScanner&&) noexcept = default;
ChunkScanner::~ChunkScanner() = default;

Result<ChunkScanner> ChunkScanner::open(std::shared_ptr<const Chunk> chunk, LogPosition from) {
  auto state = std::make_unique<State>();
  state->file = &ChunkAccess::state(*chunk);
  state->actual = std::max<std::int64_t>(from - chunk->start_position(), 0);
  // The map is needed only to start in the middle: from the front, records simply follow.
  if (chunk->header().scavenged && state->actual > 0) {
    VERGER_TRY(const auto map, state->file->positions());
    VERGER_TRY(const auto found, map->lower_bound(state->actual));
    state->actual = found.entry ? found.entry->actual : chunk->data_size();
  }
  state->buffer.resize(kFirstBufferSize);
  state->chunk = std::move(chunk);
  return ChunkScanner(std::move(state));
}

Result<std::span<const LogRecord>> ChunkScanner::next_batch(std::size_t most) {
  auto& batch = state_->batch;
  batch.clear();
  while (batch.size() < most && (batch.empty() || state_->holds_next())) {
    auto record = next();
    if (!record && batch.empty()) {
      return std::move(record).error();
    }
    if (!record || !*record) {
      break;  // the next call finds the same
    }
    batch.push_back(**std::move(record));
  }
  return std::span<const LogRecord>(batch);
}

Result<std::optional<LogRecord>> ChunkScanner::next() {
  State& s = *state_;
  if (s.file->gone.load(std::memory_order_relaxed)) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: the log was truncated below this chunk", s.file->path.string())};
  }
  const auto end = s.file->data_size.load(std::memory_order_acquire);
  const auto left = end - s.actual;
  if (left <= 0) {
    return std::optional<LogRecord>();
  }
  if (left < kFramingSize) {
    return s.file->corrupt(s.actual, "it would reach beyond the chunk's data");
  }
  VERGER_RETURN_IF_ERROR(s.fill(4, end));
  const std::int64_t size = load_le<std::int32_t>(s.buffer.data() + s.begin);
  if (size <= 0 || size > kMaxRecordSize || size + kFramingSize > left) {
    return s.file->corrupt(s.actual, fmt::format("its length {} is impossible", size));
  }
  const auto framed_size = static_cast<std::size_t>(size + kFramingSize);
  VERGER_RETURN_IF_ERROR(s.fill(framed_size, end));
  auto record = s.file->decode(ByteView(s.buffer).subspan(s.begin, framed_size), s.actual);
  if (!record) {
    return std::move(record).error();
  }
  if (record->position() <= s.last) {
    return s.file->corrupt(s.actual, fmt::format("its log position {} does not follow {}",
                                                 record->position(), s.last));
  }
  s.last = record->position();
  s.begin += framed_size;
  s.actual += static_cast<std::int64_t>(framed_size);
  return std::optional<LogRecord>(*std::move(record));
}

}  // namespace verger::log
