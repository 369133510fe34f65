#include <algorithm>
#include <utility>

#include "engine/streams/detail/hashed_records.h"
#include "engine/streams/detail/readable_digest.h"
#include "engine/streams/detail/stream_reader.h"
#include "engine/streams/event_store.h"
#include "engine/streams/transaction_reader.h"

namespace verger::streams {
namespace {

/// So that a step ends soon where records are large: stopping the job waits for it.
constexpr std::uint64_t kBytesOfStep = 4U << 20U;
/// Of records that are hashed at once.
constexpr std::size_t kBytesHashedAtOnce = std::size_t{512} << 10U;

}  // namespace

struct DigestJob::State {
  enum class Phase : std::uint8_t { kLog, kSettling, kDone };

  const log::TransactionLog& log;
  LogPosition end;
  detail::StreamReader reader;
  std::optional<detail::ReadableDigest> readable;
  log::LogCursor cursor;
  Phase phase = Phase::kLog;
  detail::RecordHashing hashing;
  std::unique_ptr<detail::HashedRecords> records = hashing.make();  ///< read, not hashed yet
  std::int32_t chunk = 0;                                           ///< whose records are read
  DatabaseDigest digest;
  LogPosition at{0};

  State(const Database& database, LogPosition end_in, Ticks now, const DigestOptions& options)
      : log(database.transaction_log()),
        end(std::min(end_in, database.committed())),
        // The reader only looks up positions here, for which it needs no time.
        reader(log, database.stream_index(), system_clock()),
        cursor(log, LogPosition(0), end),
        hashing(options.hash_in_background) {
    if (options.readable) {
      readable.emplace(options, now, [this](LogPosition of_stream, EventNumber number) {
        return locate(of_stream, number);
      });
    }
  }

  /// Where readers find the event with that number in the stream that has an event there.
  Result<std::optional<LogPosition>> locate(LogPosition of_stream, EventNumber number) const {
    Bytes buffer;
    const auto record = log.read(of_stream, buffer);
    if (!record && record.error().code != Errc::kNotFound) {
      return record.error();
    }
    const auto* prepare = record ? record->prepare() : nullptr;
    if (prepare == nullptr) {
      return std::optional<LogPosition>();
    }
    VERGER_TRY(const auto event, reader.find(prepare->stream, number));
    return event ? std::optional(event->prepare_position) : std::nullopt;
  }

  /// Ends chunks until `next` is the current one.
  void advance_to(std::int32_t next) {
    for (; chunk < next; ++chunk) {
      records->chunk_ends.push_back(records->log.size());
    }
  }

  Result<void> hash(const log::LogRecord& record) {
    advance_to(log.chunk_of(record.position()).value());
    const auto payload =
        record.framed.subspan(sizeof(std::uint32_t), record.framed.size() - log::kFramingSize);
    append_le(records->log, record.position().value());
    append_le(records->log, static_cast<std::uint32_t>(payload.size()));
    append_bytes(records->log, payload);
    ++digest.records;
    return give_if_many();
  }

  /// Takes what is hashed; with `all` waits for all of it.
  Result<void> take_hashed(bool all) {
    while (auto hashed = hashing.take(all)) {
      digest.chunks.insert(digest.chunks.end(), hashed->chunks.begin(), hashed->chunks.end());
      if (readable) {
        VERGER_RETURN_IF_ERROR(readable->add(hashed->events, hashed->messages));
      }
      hashing.recycle(std::move(hashed));
    }
    return {};
  }

  Result<void> give_records() {
    hashing.give(std::exchange(records, nullptr));
    VERGER_RETURN_IF_ERROR(take_hashed(false));
    records = hashing.make();
    return {};
  }

  Result<void> give_if_many() {
    const bool many = records->log.size() + records->messages.size() >= kBytesHashedAtOnce;
    return many ? give_records() : Result<void>();
  }

  Result<void> finish_logical() {
    if (end.value() > 0) {
      advance_to(log.chunk_of(LogPosition(end.value() - 1)).value() + 1);
    }
    VERGER_RETURN_IF_ERROR(give_records());
    VERGER_RETURN_IF_ERROR(take_hashed(true));
    Sha256 all;
    for (const auto& of_chunk : digest.chunks) {
      all.update(of_chunk);
    }
    digest.logical = all.finish();
    return {};
  }

  Result<void> add_event(const log::Prepare& prepare, EventNumber number) {
    records->events.push_back(detail::describe(prepare, number, records->messages));
    return give_if_many();
  }

  /// Describes the record's events for the readable digest.
  Result<void> look(const log::LogRecord& record) {
    if (const auto* prepare = record.prepare()) {
      const bool event =
          prepare->has(log::prepare_flags::kIsCommitted) && detail::carries_event(*prepare);
      return event ? add_event(*prepare, prepare->event_number()) : Result<void>();
    }
    if (const auto* commit = std::get_if<log::Commit>(&record.record)) {
      Result<void> outcome;
      VERGER_RETURN_IF_ERROR(
          detail::visit_transaction(log, *commit, [&](const log::Prepare& prepare) {
            outcome = add_event(prepare, detail::number_by_commit(*commit, prepare));
            return outcome.has_value();
          }));
      return outcome;
    }
    return {};
  }

  /// The log has been read.
  Result<void> end_log() {
    VERGER_RETURN_IF_ERROR(finish_logical());
    at = end;
    phase = readable ? Phase::kSettling : Phase::kDone;
    return {};
  }

  Result<void> settle() {
    VERGER_TRY(const bool done, readable->settle());
    if (done) {
      digest.readable = readable->value();
      digest.readable_events = readable->count();
      phase = Phase::kDone;
    }
    return {};
  }
};

DigestJob::DigestJob(const Database& database, LogPosition end, Ticks effective_now,
                     const DigestOptions& options)
    : state_(std::make_unique<State>(database, end, effective_now, options)) {}
DigestJob::~DigestJob() = default;

Result<StepOutcome> DigestJob::step(Budget budget) {
  auto& state = *state_;
  const auto outcome = [&state] {
    return StepOutcome{state.phase == State::Phase::kDone ? StepOutcome::Kind::kDone
                                                          : StepOutcome::Kind::kMore};
  };
  if (state.phase == State::Phase::kSettling) {
    VERGER_RETURN_IF_ERROR(state.settle());
    return outcome();
  }
  std::uint64_t bytes = 0;
  for (std::uint32_t unit = 0; unit < std::max(budget.units, 1U) && bytes < kBytesOfStep; ++unit) {
    VERGER_TRY(const auto record, state.cursor.next());
    if (!record) {
      VERGER_RETURN_IF_ERROR(state.end_log());
      return outcome();
    }
    bytes += record->framed.size();
    state.at = record->next;
    VERGER_RETURN_IF_ERROR(state.hash(*record));
    if (state.readable) {
      VERGER_RETURN_IF_ERROR(state.look(*record));
    }
  }
  return StepOutcome{StepOutcome::Kind::kMore};
}

const DatabaseDigest& DigestJob::digest() const { return state_->digest; }
LogPosition DigestJob::position() const { return std::min(state_->at, state_->end); }
LogPosition DigestJob::end() const { return state_->end; }
std::uint64_t DigestJob::bytes_on_disk() const {
  return state_->readable ? state_->readable->bytes_on_disk() : 0;
}

}  // namespace verger::streams
