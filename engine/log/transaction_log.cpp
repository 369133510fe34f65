#include "engine/log/transaction_log.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/log/detail/known_checkpoints.h"
#include "engine/log/detail/known_epochs.h"
#include "engine/log/detail/live_chunks.h"
#include "engine/log/detail/log_opening.h"
#include "engine/log/detail/log_parts.h"
#include "engine/log/detail/log_replica.h"
#include "engine/log/detail/log_writer.h"
#include "engine/log/detail/truncation.h"

namespace verger::log {

/// What a log is made of; each knows only those above it.
struct TransactionLog::State {
  State(detail::LogParts of, detail::CheckpointFiles stored, const detail::Judgement& judgement)
      : parts(std::move(of)),
        chunks(judgement.chunks),
        checkpoints(judgement.checkpoints),
        epochs(judgement.epochs, chunks, checkpoints, parts.options.access == Access::kWrite),
        writer(parts, chunks, epochs, checkpoints, std::move(stored), judgement.checkpoints.writer),
        replica(parts, chunks, epochs, writer) {}

  const detail::LogParts parts;
  detail::LiveChunks chunks;
  detail::KnownCheckpoints checkpoints;
  detail::KnownEpochs epochs;
  detail::LogWriter writer;
  detail::LogReplica replica;
};

TransactionLog::TransactionLog(std::unique_ptr<State> state) : state_(std::move(state)) {}
TransactionLog::~TransactionLog() = default;

Result<std::unique_ptr<TransactionLog>> TransactionLog::open(FileSystem& files,
                                                             const Path& directory,
                                                             LogOptions options, Clock& clock,
                                                             Random& random, Log& log) {
  VERGER_TRY(auto opened, detail::open_directory(files, directory, options));
  auto judgement = std::move(opened.judgement);
  const auto pending = judgement.checkpoints.truncate;
  if (options.access == Access::kWrite) {
    judgement.checkpoints.truncate = kNoPosition;
  }
  auto state = std::make_unique<State>(detail::LogParts{.files = files,
                                                        .directory = directory,
                                                        .options = options,
                                                        .clock = clock,
                                                        .random = random,
                                                        .log = log,
                                                        .chunk_size = judgement.chunk_size,
                                                        .lock = std::move(opened.lock),
                                                        .truncated = opened.truncated},
                                       std::move(opened.snapshot.checkpoints), judgement);
  if (options.access == Access::kWrite) {
    VERGER_RETURN_IF_ERROR(state->writer.recover(judgement));
  } else if (pending != kNoPosition) {
    log.warning("a truncation of the log is pending; what is shown is the log before it",
                {{"directory", directory.string()}, {"position", fmt::to_string(pending)}});
  }
  return std::unique_ptr<TransactionLog>(new TransactionLog(std::move(state)));
}

const Path& TransactionLog::directory() const { return state_->parts.directory; }
std::int32_t TransactionLog::chunk_size() const { return state_->parts.chunk_size; }
ChunkNumber TransactionLog::chunk_of(LogPosition position) const {
  return ChunkNumber(static_cast<std::int32_t>(position.value() / state_->parts.chunk_size));
}
bool TransactionLog::truncated_at_open() const { return state_->parts.truncated; }

Checkpoints TransactionLog::checkpoints() const {
  auto values = state_->checkpoints.values();
  values.writer = end();
  return values;
}

std::vector<std::shared_ptr<const Chunk>> TransactionLog::chunks() const {
  return state_->chunks.all();
}
std::shared_ptr<const Chunk> TransactionLog::chunk_at(LogPosition position) const {
  return state_->chunks.at(position);
}
LogPosition TransactionLog::end() const { return state_->writer.end(); }

Result<LogRecord> TransactionLog::read(LogPosition position, Bytes& buffer) const {
  const auto chunk = position < end() ? state_->chunks.at(position) : nullptr;
  if (!chunk) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: no record at log position {}, the log ends at {}",
                             state_->parts.directory.string(), position, end())};
  }
  return chunk->read(position, buffer);
}

Result<bool> TransactionLog::has_record_at(LogPosition position) const {
  const auto chunk = position < end() ? state_->chunks.at(position) : nullptr;
  return chunk ? chunk->has_record_at(position) : Result<bool>(false);
}

LogPosition TransactionLog::append_position() const { return state_->writer.append_position(); }

Result<std::vector<LogPosition>> TransactionLog::append(std::span<Prepare> prepares) {
  return state_->writer.append(prepares);
}

Result<LogPosition> TransactionLog::append(Commit commit) {
  if (commit.transaction_position.value() < 0 || commit.version > 1 ||
      commit.correlation_id.is_zero()) {
    return Error{Errc::kInvalidArgument,
                 "a commit needs its transaction's position and a correlation id"};
  }
  return state_->writer.append(Record(commit));
}

Result<Epoch> TransactionLog::append_epoch(EpochNumber number, const Uuid& leader_instance_id) {
  State& s = *state_;
  VERGER_RETURN_IF_ERROR(flush());
  VERGER_RETURN_IF_ERROR(s.epochs.find());
  const auto previous = s.epochs.history().last();
  if (number.value() < 0 || (previous && number <= previous->number)) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("epoch {} cannot follow epoch {}: numbers grow", number,
                             previous ? previous->number.value() : -1)};
  }
  // Numbered on from the event behind the previous epoch; from 0 when there is none.
  std::int64_t expected = -1;
  if (previous) {
    Bytes buffer;
    VERGER_RETURN_IF_ERROR(read(previous->position, buffer));
    LogCursor cursor(*this, previous->position, end());
    VERGER_RETURN_IF_ERROR(cursor.next());
    VERGER_TRY(const auto after, cursor.next());
    const Prepare* event = after ? after->prepare() : nullptr;
    if (event != nullptr && event->stream == detail::kEpochStream) {
      expected = event->expected_version + 1;
    }
  }

  Epoch epoch;
  epoch.number = number;
  epoch.id = s.parts.random.uuid();
  epoch.previous = previous ? previous->position : kNoPosition;
  epoch.timestamp = s.parts.clock.now();
  epoch.leader_instance_id = leader_instance_id;
  return s.writer.append_epoch(epoch, expected);
}

Result<void> TransactionLog::flush() { return state_->writer.flush(); }
Result<std::shared_ptr<LogFlush>> TransactionLog::begin_flush() {
  return state_->writer.begin_flush();
}
Result<void> TransactionLog::finish_flush() { return state_->writer.finish_flush(); }
Result<void> TransactionLog::complete_chunk() { return state_->writer.complete_chunk(); }

Result<void> TransactionLog::append_replicated(ByteView framed_records) {
  return state_->replica.append(framed_records);
}
Result<void> TransactionLog::complete_replicated_chunk() {
  return state_->replica.complete_chunk();
}
Result<void> TransactionLog::start_replicated_chunk(const ChunkHeader& header) {
  return state_->replica.start_chunk(header);
}
Result<void> TransactionLog::receive_chunk(const Path& temporary) {
  return state_->replica.receive_chunk(temporary);
}
Result<void> TransactionLog::truncate(LogPosition position) {
  return state_->writer.truncate(position);
}

void TransactionLog::set_chaser(LogPosition position) { state_->checkpoints.set_chaser(position); }
void TransactionLog::set_proposal(std::int32_t number) { state_->checkpoints.set_proposal(number); }
Result<void> TransactionLog::flush_checkpoints() { return state_->writer.flush_checkpoints(); }
Result<void> TransactionLog::publish_chaser() { return state_->writer.publish_chaser(); }

const EpochHistory& TransactionLog::epochs() const {
  if (const auto found = state_->epochs.find(); !found) {
    state_->parts.log.error("cannot read the log's epochs", {{"error", found.error().message}});
  }
  return state_->epochs.history();
}

Result<std::shared_ptr<const Chunk>> TransactionLog::switch_in_chunk(const Path& temporary) {
  State& s = *state_;
  if (s.parts.options.access != Access::kWrite) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: was opened read-only", s.parts.directory.string())};
  }
  VERGER_TRY(const auto opened, Chunk::open_completed(s.parts.files, temporary));
  const ChunkHeader header = opened->header();
  const std::lock_guard structure(s.chunks.structure());
  const auto live = s.chunks.all();
  // Exactly the range of whole live chunks, all of them completed.
  const auto first = std::ranges::find(live, header.start, &Chunk::start);
  const auto last = std::ranges::find(live, header.end, &Chunk::end);
  if (header.chunk_size != s.parts.chunk_size || first == live.end() || last == live.end() ||
      first > last || !std::all_of(first, last + 1, [](const auto& c) { return c->completed(); })) {
    return Error{
        Errc::kConflict,
        fmt::format("{}: covers chunks {} to {}, which are not (or no longer) whole completed "
                    "chunks of the database",
                    temporary.string(), header.start, header.end)};
  }
  VERGER_TRY(const int version,
             detail::next_version(s.parts.files, s.parts.directory, header.start));
  const Path path = s.parts.directory / chunk_file_name(header.start, version);
  // Complete and synced before it gets its name; a crash after the rename leaves old and new, of
  // which the new one counts, and the old ones are removed at the next opening.
  VERGER_RETURN_IF_ERROR(s.parts.files.rename(temporary, path));
  VERGER_FAILPOINT("log.switch.after-rename");
  VERGER_RETURN_IF_ERROR(s.parts.files.sync_directory(s.parts.directory));
  static_cast<void>(s.parts.files.set_read_only(path, true));
  VERGER_TRY(std::shared_ptr<const Chunk> chunk, Chunk::open_completed(s.parts.files, path));
  s.chunks.retire(s.chunks.put(chunk));
  return chunk;
}

}  // namespace verger::log
