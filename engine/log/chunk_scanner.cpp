#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "engine/log/chunk.h"
#include "engine/log/detail/chunk_state.h"
#include "engine/log/detail/limits.h"

namespace verger::log {

constexpr std::size_t kFirstBufferSize = 16UZ * 1024;
/// What was read stays in the processor's cache until it is decoded, also beside another reader.
constexpr std::size_t kMostBufferSize = 256UZ * 1024;

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

  /// Moves what is left to the front, and makes room for `wanted` bytes.
  void compact(std::size_t wanted) {
    std::memmove(buffer.data(), buffer.data() + begin, filled - begin);
    filled -= begin;
    begin = 0;
    if (buffer.size() < wanted) {
      buffer.resize(wanted);
    }
  }

  /// At least `wanted` bytes of the chunk's data from `begin` on; `end` is the data's end.
  Result<void> fill(std::size_t wanted, std::int64_t end) {
    if (filled - begin >= wanted) {
      return {};
    }
    // A short look costs a short read; a caller that reads on gets larger ones.
    compact(std::max(wanted, std::min(4 * buffer.size(), kMostBufferSize)));
    const auto in_file = static_cast<std::uint64_t>(actual) + filled;
    const auto size = std::min(buffer.size() - filled,
                               static_cast<std::size_t>(end) - static_cast<std::size_t>(in_file));
    VERGER_RETURN_IF_ERROR(file->file->read_exact(kChunkHeaderSize + in_file,
                                                  MutableBytes(buffer).subspan(filled, size)));
    filled += size;
    return {};
  }

  Result<bool> next(LogRecord& record);
  Result<std::span<const LogRecord>> next_batch(std::size_t most, bool may_read);
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

/// False at the end of the chunk's data.
Result<bool> ChunkScanner::State::next(LogRecord& record) {
  if (file->gone.load(std::memory_order_relaxed)) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: the log was truncated below this chunk", file->path.string())};
  }
  const auto end = file->data_size.load(std::memory_order_acquire);
  const auto left = end - actual;
  if (left <= 0) {
    return false;
  }
  if (left < kFramingSize) {
    return file->corrupt(actual, "it would reach beyond the chunk's data");
  }
  VERGER_RETURN_IF_ERROR(fill(4, end));
  const std::int64_t size = load_le<std::int32_t>(buffer.data() + begin);
  if (size <= 0 || size > kMaxRecordSize || size + kFramingSize > left) {
    return file->corrupt(actual, fmt::format("its length {} is impossible", size));
  }
  const auto framed_size = static_cast<std::size_t>(size + kFramingSize);
  VERGER_RETURN_IF_ERROR(fill(framed_size, end));
  VERGER_RETURN_IF_ERROR(
      file->decode(ByteView(buffer).subspan(begin, framed_size), actual, record));
  const auto position = record.position();
  if (position <= last) {
    return file->corrupt(actual,
                         fmt::format("its log position {} does not follow {}", position, last));
  }
  last = position;
  begin += framed_size;
  actual += static_cast<std::int64_t>(framed_size);
  return true;
}

/// Stops where the next record is not in the buffer; the first one may have to be read.
Result<std::span<const LogRecord>> ChunkScanner::State::next_batch(std::size_t most,
                                                                   bool may_read) {
  std::size_t count = 0;
  while (count < most && ((count == 0 && may_read) || holds_next())) {
    if (count == batch.size()) {
      batch.resize(std::min(most, 2 * count + 1));
    }
    auto more = next(batch[count]);
    if (!more && count == 0) {
      return std::move(more).error();
    }
    if (!more || !*more) {
      break;  // the next call finds the same
    }
    ++count;
  }
  return std::span<const LogRecord>(batch).first(count);
}

Result<std::span<const LogRecord>> ChunkScanner::next_batch(std::size_t most) {
  return state_->next_batch(most, true);
}

Result<std::span<const LogRecord>> ChunkScanner::next_read(std::size_t most) {
  return state_->next_batch(most, false);
}

Result<ByteView> ChunkScanner::read_ahead(std::size_t size) {
  State& s = *state_;
  const auto in_file = s.actual + static_cast<std::int64_t>(s.filled - s.begin);
  const auto left = s.file->data_size.load(std::memory_order_acquire) - in_file;
  const auto more = std::min(size, static_cast<std::size_t>(std::max<std::int64_t>(left, 0)));
  s.compact(s.filled - s.begin + more);
  const auto into = MutableBytes(s.buffer).subspan(s.filled, more);
  VERGER_RETURN_IF_ERROR(
      s.file->file->read_exact(kChunkHeaderSize + static_cast<std::uint64_t>(in_file), into));
  s.filled += more;
  return ByteView(into);
}

Result<std::optional<LogRecord>> ChunkScanner::next() {
  Result<std::optional<LogRecord>> record;
  if (auto more = state_->next(record->emplace()); !more) {
    record = std::move(more).error();
  } else if (!*more) {
    record->reset();
  }
  return record;
}

}  // namespace verger::log
