#include <algorithm>
#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/base/utf8.h"
#include "engine/log/detail/byte_reader.h"
#include "engine/log/detail/chunk_state.h"
#include "engine/log/detail/log_state.h"

namespace verger::log {

using detail::Checkpoint;

namespace {

constexpr std::string_view kEpochStream = "$epoch-information";
constexpr std::string_view kScavengePointStream = "$scavengePoints";
constexpr std::string_view kScavengePointType = "$scavengePoint";

/// What followers and scavenges parse and write again has to come out the same.
Result<void> check_prepare(const Prepare& prepare) {
  const auto bad = [&](std::string_view what) {
    return Error{Errc::kInvalidArgument, fmt::format("event of type \"{}\" for stream \"{}\": {}",
                                                     prepare.type, prepare.stream, what)};
  };
  if (prepare.stream.empty()) {
    return bad("a stream has a name");
  }
  if (!is_utf8(prepare.stream) || !is_utf8(prepare.type)) {
    return bad("names are valid UTF-8");
  }
  if (prepare.event_id.is_zero() || prepare.correlation_id.is_zero()) {
    return bad("neither event id nor correlation id may be zero");
  }
  if (prepare.version > 1 || prepare.transaction_offset < -1 || prepare.expected_version < -2) {
    return bad(
        fmt::format("version {}, transaction offset {} or expected version {} cannot be "
                    "written",
                    prepare.version, prepare.transaction_offset, prepare.expected_version));
  }
  if (prepare.version == 0 && prepare.expected_version > std::numeric_limits<std::int32_t>::max() &&
      prepare.expected_version != kDeletedStream.value() - 1) {
    return bad("a record of version 0 has 32 bits for the expected version");
  }
  if (prepare.timestamp.value() < 0 || prepare.timestamp > kMaxTicks) {
    return bad("its time is out of range");
  }
  if (detail::prepare_weight(prepare) > kMaxRecordSize) {
    return bad("it is larger than 16 MiB");
  }
  return {};
}

}  // namespace

Result<void> TransactionLog::State::check_writable() const {
  if (options.access != Access::kWrite) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: was opened read-only", directory.string())};
  }
  if (failure) {
    return failure->within("closed for writing since an earlier failure; open the database again");
  }
  return {};
}

Result<void> TransactionLog::State::guarded(Result<void> outcome) {
  if (!outcome && !failure) {
    failure = outcome.error();
    log.error("the log can no longer be written", {{"error", failure->message}});
  }
  return outcome;
}

ChunkHeader TransactionLog::State::next_header() {
  ChunkHeader header;
  header.chunk_size = chunk_size;
  header.start = ChunkNumber(static_cast<std::int32_t>(append_position / chunk_size));
  header.end = header.start;
  header.chunk_id = random.uuid();
  return header;
}

Result<void> TransactionLog::State::start_chunk(const ChunkHeader& header) {
  VERGER_TRY(active, detail::ActiveChunk::create(files, directory, header, random,
                                                 options.hash_in_background));
  put(active->chunk());
  return {};
}

Result<void> TransactionLog::State::ensure_active() {
  if (active && active->chunk()->end_position().value() > append_position) {
    return {};
  }
  if (active) {
    return roll(RollOrder::kNewChunkFirst, true);  // filled to its last byte
  }
  const std::lock_guard structure(structure_mutex);
  return start_chunk(next_header());
}

Result<void> TransactionLog::State::append_bytes_at_end(ByteView framed) {
  VERGER_RETURN_IF_ERROR(active->append(framed));
  append_position += static_cast<std::int64_t>(framed.size());
  return {};
}

Result<void> TransactionLog::State::flush() {
  if (append_position == end.load(std::memory_order_relaxed)) {
    return {};
  }
  // Data first: writer.chk never promises bytes that a power cut could remove.
  VERGER_RETURN_IF_ERROR(active->sync());
  VERGER_FAILPOINT("log.flush.before-writer-chk");
  VERGER_RETURN_IF_ERROR(stored.store(Checkpoint::kWriter, append_position));
  ChunkAccess::publish(*active->chunk(), active->data_size());
  end.store(append_position, std::memory_order_release);
  if (!unflushed_epochs.empty()) {
    const auto newest = unflushed_epochs.back().position;
    {
      const std::lock_guard guard(epoch_mutex);
      for (const auto& epoch : unflushed_epochs) {
        epochs.add(epoch);
      }
      unflushed_epochs.clear();
      const std::lock_guard guard_checkpoints(checkpoint_mutex);
      checkpoints.epoch = newest;
    }
    // A crash before this leaves an older epoch: its successors are found behind it.
    VERGER_RETURN_IF_ERROR(stored.store(Checkpoint::kEpoch, newest.value()));
  }
  return {};
}

Result<void> TransactionLog::State::roll(RollOrder order, bool start_next) {
  // Epochs must be known before the chunk they are in is out of flush's sight.
  VERGER_RETURN_IF_ERROR(flush());
  const std::lock_guard structure(structure_mutex);
  VERGER_TRY(auto completed, active->complete());
  append_position = completed->end_position().value();
  active.reset();
  if (start_next && order == RollOrder::kNewChunkFirst) {
    // A crash now leaves an empty chunk behind writer.chk; opening removes it and continues the
    // completed one.
    VERGER_TRY(active, detail::ActiveChunk::create(files, directory, next_header(), random,
                                                   options.hash_in_background));
  }
  // A crash before this leaves writer.chk inside a completed chunk, which is then reopened; after
  // it, on a boundary without or with the next chunk.
  VERGER_RETURN_IF_ERROR(stored.store(Checkpoint::kWriter, append_position));
  put(std::move(completed));
  if (active) {
    put(active->chunk());
  } else if (start_next) {
    VERGER_RETURN_IF_ERROR(start_chunk(next_header()));
  }
  end.store(append_position, std::memory_order_release);
  return {};
}

LogPosition TransactionLog::append_position() const { return LogPosition(state_->append_position); }

Result<std::vector<LogPosition>> TransactionLog::append(std::span<Prepare> prepares) {
  State& s = *state_;
  VERGER_RETURN_IF_ERROR(s.check_writable());
  std::int64_t total = 0;
  for (const Prepare& prepare : prepares) {
    VERGER_RETURN_IF_ERROR(check_prepare(prepare));
    total += static_cast<std::int64_t>(record_size(Record(prepare))) + kFramingSize;
  }
  if (total > s.chunk_size) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("a write of {} bytes does not fit into a chunk of {}; write fewer "
                             "events at once",
                             total, s.chunk_size)};
  }
  std::vector<LogPosition> positions;
  if (prepares.empty()) {
    return positions;
  }
  if (s.active && !s.active->fits(total)) {
    VERGER_RETURN_IF_ERROR(s.guarded(
        s.roll(prepares.size() == 1 ? RollOrder::kNewChunkFirst : RollOrder::kWriterFirst, true)));
  }
  VERGER_RETURN_IF_ERROR(s.guarded(s.ensure_active()));
  s.scratch.clear();
  positions.reserve(prepares.size());
  const LogPosition first(s.append_position);
  for (Prepare& prepare : prepares) {
    prepare.position = first + static_cast<std::int64_t>(s.scratch.size());
    if (prepare.transaction_position == kNoPosition) {
      prepare.transaction_position = first;
    }
    append_framed(s.scratch, Record(prepare));
    positions.push_back(prepare.position);
  }
  VERGER_RETURN_IF_ERROR(s.guarded(s.append_bytes_at_end(s.scratch)));
  const bool is_point = prepares.size() == 1 && prepares[0].stream == kScavengePointStream &&
                        prepares[0].type == kScavengePointType;
  if (is_point) {
    VERGER_RETURN_IF_ERROR(s.guarded(s.roll(RollOrder::kWriterFirst, true)));
  }
  return positions;
}

Result<LogPosition> TransactionLog::State::append_single(Record record) {
  VERGER_RETURN_IF_ERROR(check_writable());
  const auto size = static_cast<std::int64_t>(record_size(record)) + kFramingSize;
  if (active && !active->fits(size)) {
    VERGER_RETURN_IF_ERROR(guarded(roll(RollOrder::kNewChunkFirst, true)));
  }
  VERGER_RETURN_IF_ERROR(guarded(ensure_active()));
  const LogPosition position(append_position);
  if (auto* commit = std::get_if<Commit>(&record)) {
    commit->position = position;
    commit->sort_key = position.value();
  } else {
    std::get<SystemRecord>(record).position = position;
  }
  scratch.clear();
  append_framed(scratch, record);
  VERGER_RETURN_IF_ERROR(guarded(append_bytes_at_end(scratch)));
  return position;
}

Result<LogPosition> TransactionLog::append(Commit commit) {
  if (commit.transaction_position.value() < 0 || commit.version > 1 ||
      commit.correlation_id.is_zero()) {
    return Error{Errc::kInvalidArgument,
                 "a commit needs its transaction's position and a correlation id"};
  }
  return state_->append_single(Record(commit));
}

Result<Epoch> TransactionLog::append_epoch(EpochNumber number, const Uuid& leader_instance_id) {
  State& s = *state_;
  VERGER_RETURN_IF_ERROR(s.check_writable());
  VERGER_RETURN_IF_ERROR(flush());
  VERGER_RETURN_IF_ERROR(s.find_epochs());
  const auto previous = s.epochs.last();
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
    if (event != nullptr && event->stream == kEpochStream) {
      expected = event->expected_version + 1;
    }
  }

  Epoch epoch;
  epoch.number = number;
  epoch.id = s.random.uuid();
  epoch.previous = previous ? previous->position : kNoPosition;
  epoch.timestamp = s.clock.now();
  epoch.leader_instance_id = leader_instance_id;
  // The text holds the position, and the position depends on whether the text fits.
  epoch.position = LogPosition(s.append_position);
  auto size = static_cast<std::int64_t>(encode_epoch_json(epoch).size()) + 32 + kFramingSize;
  if (s.active && !s.active->fits(size)) {
    VERGER_RETURN_IF_ERROR(s.guarded(s.roll(RollOrder::kNewChunkFirst, true)));
  }
  VERGER_RETURN_IF_ERROR(s.guarded(s.ensure_active()));
  epoch.position = LogPosition(s.append_position);
  const std::string json = encode_epoch_json(epoch);
  VERGER_RETURN_IF_ERROR(
      s.append_single(Record(SystemRecord{epoch.position, epoch.timestamp, as_bytes(json)})));
  s.unflushed_epochs.push_back(epoch);

  namespace flags = prepare_flags;
  Prepare event;
  event.flags = flags::kData | flags::kTransactionBegin | flags::kTransactionEnd |
                flags::kIsCommitted | flags::kIsJson;
  event.transaction_position = kNoPosition;
  event.expected_version = expected;
  event.stream = kEpochStream;
  event.event_id = s.random.uuid();
  event.correlation_id = s.random.uuid();
  event.timestamp = epoch.timestamp;
  event.type = kEpochStream;
  event.data = as_bytes(json);
  VERGER_RETURN_IF_ERROR(append(std::span(&event, 1)));
  VERGER_RETURN_IF_ERROR(flush());
  {
    const std::lock_guard lock(s.checkpoint_mutex);
    s.checkpoints.proposal = std::max(s.checkpoints.proposal, number.value());
  }
  return epoch;
}

Result<void> TransactionLog::flush() {
  VERGER_RETURN_IF_ERROR(state_->check_writable());
  return state_->guarded(state_->flush());
}

Result<void> TransactionLog::complete_chunk() {
  State& s = *state_;
  VERGER_RETURN_IF_ERROR(s.check_writable());
  if (s.active && s.active->data_size() > 0) {
    return s.guarded(s.roll(RollOrder::kWriterFirst, true));
  }
  return s.guarded(s.ensure_active());
}

}  // namespace verger::log
