#include <algorithm>
#include <fmt/format.h>

#include "engine/log/transaction_log.h"

namespace verger::log {

struct LogCursor::State {
  const TransactionLog* log = nullptr;
  LogPosition next;  ///< where the next chunk is looked for
  LogPosition end;
  std::shared_ptr<const Chunk> chunk;
  std::optional<ChunkScanner> scanner;
};

LogCursor::LogCursor(const TransactionLog& log, LogPosition from, LogPosition end)
    : state_(std::make_unique<State>()) {
  state_->log = &log;
  state_->next = std::max(from, LogPosition(0));
  state_->end = end;
}
LogCursor::LogCursor(LogCursor&&) noexcept = default;
LogCursor::~LogCursor() = default;

Result<std::optional<LogRecord>> LogCursor::next() {
  State& s = *state_;
  const LogPosition end = std::min(s.end, s.log->end());
  for (;;) {
    if (!s.scanner) {
      if (s.next >= end) {
        return std::optional<LogRecord>();
      }
      s.chunk = s.log->chunk_at(s.next);
      if (!s.chunk) {
        return Error{Errc::kNotFound,
                     fmt::format("{}: no chunk covers log position {} although the log ends at {}",
                                 s.log->directory().string(), s.next, end)};
      }
      VERGER_TRY(s.scanner, ChunkScanner::open(s.chunk, s.next));
    }
    if (auto record = s.scanner->next(); !record) {
      return record;
    } else if (record->has_value()) {
      s.next = (*record)->next;
      if ((*record)->position() >= end) {
        s.scanner.reset();
        s.next = end;
        record->reset();
      }
      return record;
    }
    s.scanner.reset();
    // The active chunk ends where the log ends now; behind a completed one the next begins.
    s.next = s.chunk->completed() ? s.chunk->end_position()
                                  : std::max(s.next, std::min(end, s.chunk->end_position()));
  }
}

Result<std::optional<LogRecord>> read_before(const TransactionLog& log, LogPosition position,
                                             Bytes& buffer) {
  for (LogPosition at = std::min(position, log.end()); at.value() > 0;) {
    const auto chunk = log.chunk_at(at + -1);
    if (!chunk) {
      return Error{Errc::kNotFound, fmt::format("{}: no chunk covers log position {}",
                                                log.directory().string(), at.value() - 1)};
    }
    VERGER_TRY(auto record, chunk->read_before(at, buffer));
    if (record) {
      return record;
    }
    at = chunk->start_position();
  }
  return std::optional<LogRecord>();
}

}  // namespace verger::log
