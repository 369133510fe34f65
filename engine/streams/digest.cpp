#include <algorithm>

#include "engine/streams/detail/readable_digest.h"
#include "engine/streams/detail/stream_reader.h"
#include "engine/streams/event_store.h"
#include "engine/streams/transaction_reader.h"

namespace verger::streams {

struct DigestJob::State {
  enum class Pass : std::uint8_t { kLogical, kReadable, kDone };

  const log::TransactionLog& log;
  LogPosition end;
  detail::StreamReader reader;
  detail::ReadableDigest readable;
  std::optional<log::LogCursor> cursor;
  Pass pass = Pass::kLogical;
  Sha256 chunk_hash;
  DatabaseDigest digest;
  std::uint64_t bytes_read = 0;

  State(const Database& database, LogPosition end_in, Ticks now)
      : log(database.transaction_log()),
        end(std::min(end_in, database.committed())),
        // The reader only looks up positions here, for which it needs no time.
        reader(log, database.stream_index(), system_clock()),
        readable(now,
                 [this](std::string_view stream,
                        EventNumber number) -> Result<std::optional<LogPosition>> {
                   VERGER_TRY(const auto event, reader.find(stream, number));
                   return event ? std::optional(event->prepare_position) : std::nullopt;
                 }),
        cursor(std::in_place, log, LogPosition(0), end) {}

  /// Ends chunks until `chunk` is the current one.
  void advance_to(std::int32_t chunk) {
    while (std::ssize(digest.chunks) < chunk) {
      digest.chunks.push_back(chunk_hash.finish());
      chunk_hash = Sha256();
    }
  }

  void hash(const log::LogRecord& record) {
    advance_to(log.chunk_of(record.position()).value());
    const auto payload =
        record.framed.subspan(sizeof(std::uint32_t), record.framed.size() - log::kFramingSize);
    std::array<std::byte, 12> head{};
    store_le(head.data(), record.position().value());
    store_le(head.data() + 8, static_cast<std::uint32_t>(payload.size()));
    chunk_hash.update(head);
    chunk_hash.update(payload);
    ++digest.records;
  }

  void finish_logical() {
    if (end.value() > 0) {
      advance_to(log.chunk_of(LogPosition(end.value() - 1)).value() + 1);
    }
    Sha256 all;
    for (const auto& chunk : digest.chunks) {
      all.update(chunk);
    }
    digest.logical = all.finish();
  }

  /// Shows the record's events to the readable digest.
  Result<void> look(const log::LogRecord& record) {
    const auto show = [&](const log::Prepare& prepare, EventNumber number) -> Result<void> {
      if (pass == Pass::kLogical) {
        readable.learn(prepare, number);
        return {};
      }
      return readable.add(prepare, number);
    };
    if (const auto* prepare = record.prepare()) {
      const bool event =
          prepare->has(log::prepare_flags::kIsCommitted) && detail::carries_event(*prepare);
      return event ? show(*prepare, prepare->event_number()) : Result<void>();
    }
    if (const auto* commit = std::get_if<log::Commit>(&record.record)) {
      Result<void> outcome;
      VERGER_CHECK(detail::visit_transaction(log, *commit, [&](const log::Prepare& prepare) {
        outcome = show(prepare, detail::number_by_commit(*commit, prepare));
        return outcome.has_value();
      }));
      return outcome;
    }
    return {};
  }

  void next_pass() {
    if (pass == Pass::kLogical) {
      finish_logical();
      cursor.emplace(log, LogPosition(0), end);
      pass = Pass::kReadable;
      return;
    }
    digest.readable = readable.value();
    digest.readable_events = readable.count();
    pass = Pass::kDone;
  }
};

DigestJob::DigestJob(const Database& database, LogPosition end, Ticks effective_now)
    : state_(std::make_unique<State>(database, end, effective_now)) {}
DigestJob::~DigestJob() = default;

Result<StepOutcome> DigestJob::step(Budget budget) {
  auto& state = *state_;
  for (std::uint32_t unit = 0; unit < std::max(budget.units, 1U); ++unit) {
    VERGER_TRY(const auto record, state.cursor->next());
    if (!record) {
      state.next_pass();
      return StepOutcome{state.pass == State::Pass::kDone ? StepOutcome::Kind::kDone
                                                          : StepOutcome::Kind::kMore};
    }
    state.bytes_read += record->framed.size();
    if (state.pass == State::Pass::kLogical) {
      state.hash(*record);
    }
    VERGER_CHECK(state.look(*record));
  }
  return StepOutcome{StepOutcome::Kind::kMore};
}

const DatabaseDigest& DigestJob::digest() const { return state_->digest; }
std::uint64_t DigestJob::bytes_read() const { return state_->bytes_read; }

}  // namespace verger::streams
