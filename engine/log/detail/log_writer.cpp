#include "engine/log/detail/log_writer.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "engine/base/failpoint.h"
#include "engine/base/utf8.h"
#include "engine/log/detail/chunk_state.h"
#include "engine/log/detail/opening.h"
#include "engine/log/detail/prepare_weight.h"
#include "engine/log/detail/truncation.h"
#include "engine/log/record.h"

namespace verger::log::detail {
namespace {

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
  if (prepare_weight(prepare) > kMaxRecordSize) {
    return bad("it is larger than 16 MiB");
  }
  return {};
}

}  // namespace

LogWriter::LogWriter(const LogParts& parts, LiveChunks& chunks, KnownEpochs& epochs,
                     KnownCheckpoints& checkpoints, CheckpointFiles stored, LogPosition end)
    : parts_(parts),
      chunks_(chunks),
      epochs_(epochs),
      checkpoints_(checkpoints),
      stored_(std::move(stored)),
      end_(end.value()),
      append_position_(end.value()) {}

Result<void> LogWriter::recover(const Judgement& judgement) {
  // writer.chk before anything is removed: with the old value the received chunk would be the last,
  // and it would be found again.
  const auto& values = judgement.checkpoints;
  VERGER_RETURN_IF_ERROR(stored_.store(Checkpoint::kWriter, values.writer.value()));
  // Missing files get their initial values, so that other programs need not guess.
  VERGER_RETURN_IF_ERROR(stored_.store(Checkpoint::kChaser, values.chaser.value()));
  VERGER_RETURN_IF_ERROR(stored_.store(Checkpoint::kEpoch, values.epoch.value()));
  VERGER_RETURN_IF_ERROR(stored_.store(Checkpoint::kProposal, values.proposal));
  VERGER_RETURN_IF_ERROR(stored_.store(Checkpoint::kTruncate, -1));
  // None of these files is live, in any order of removals.
  for (const auto& name : judgement.to_remove) {
    VERGER_RETURN_IF_ERROR(parts_.files.remove(parts_.directory / name));
    parts_.log.info("removed a chunk file that is not live", {{"file", name}});
  }
  if (!judgement.to_remove.empty()) {
    VERGER_RETURN_IF_ERROR(parts_.files.sync_directory(parts_.directory));
  }
  for (const auto& name : judgement.temporary) {
    if (const auto removed = parts_.files.remove(parts_.directory / name); !removed) {
      parts_.log.warning("cannot remove a temporary file", {{"error", removed.error().message}});
    }
  }
  if (judgement.active) {
    VERGER_TRY(active_, ActiveChunk::open(parts_.files, judgement.active,
                                          parts_.options.hash_in_background));
  }
  return {};
}

Result<void> LogWriter::check_writable() const {
  if (parts_.options.access != Access::kWrite) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: was opened read-only", parts_.directory.string())};
  }
  if (failure_) {
    return failure_->within("closed for writing since an earlier failure; open the database again");
  }
  return {};
}

Result<void> LogWriter::guarded(Result<void> outcome) {
  if (!outcome && !failure_) {
    failure_ = outcome.error();
    parts_.log.error("the log can no longer be written", {{"error", failure_->message}});
  }
  return outcome;
}

ChunkHeader LogWriter::next_header() {
  ChunkHeader header;
  header.chunk_size = parts_.chunk_size;
  header.start = ChunkNumber(static_cast<std::int32_t>(append_position_ / parts_.chunk_size));
  header.end = header.start;
  header.chunk_id = parts_.random.uuid();
  return header;
}

Result<void> LogWriter::start_chunk(const ChunkHeader& header) {
  VERGER_TRY(active_, ActiveChunk::create(parts_.files, parts_.directory, header, parts_.random,
                                          parts_.options.hash_in_background));
  chunks_.put(active_->chunk());
  return {};
}

Result<void> LogWriter::ensure_active() {
  if (active_ && active_->chunk()->end_position().value() > append_position_) {
    return {};
  }
  if (active_) {
    return roll(RollOrder::kNewChunkFirst, true);  // filled to its last byte
  }
  const std::lock_guard structure(chunks_.structure());
  return start_chunk(next_header());
}

Result<void> LogWriter::append_bytes(ByteView framed) {
  VERGER_RETURN_IF_ERROR(active_->append(framed));
  append_position_ += static_cast<std::int64_t>(framed.size());
  return {};
}

Result<void> LogWriter::prepare_flush() {
  if (append_position_ == end_.load(std::memory_order_relaxed)) {
    return {};
  }
  VERGER_TRY(auto chunk, active_->written_file());
  VERGER_TRY(auto checkpoint, stored_.open_to_overwrite(Checkpoint::kWriter));
  flush_under_way_ = FlushUnderWay{.flush = std::make_shared<LogFlush>(
                                       std::move(chunk), std::move(checkpoint), append_position_),
                                   .data_size = active_->data_size(),
                                   .epoch_count = unflushed_epochs_.size()};
  return {};
}

Result<void> LogWriter::complete_flush() {
  if (!flush_under_way_) {
    return {};
  }
  const auto begun = *std::exchange(flush_under_way_, std::nullopt);
  VERGER_RETURN_IF_ERROR(begun.flush->sync());
  stored_.note_stored(Checkpoint::kWriter, begun.flush->end());
  ChunkAccess::publish(*active_->chunk(), begun.data_size);
  end_.store(begun.flush->end(), std::memory_order_release);
  if (begun.epoch_count > 0) {
    const auto durable = std::span(unflushed_epochs_).first(begun.epoch_count);
    const auto newest = durable.back().position;
    epochs_.add(durable);
    unflushed_epochs_.erase(
        unflushed_epochs_.begin(),
        unflushed_epochs_.begin() + static_cast<std::ptrdiff_t>(begun.epoch_count));
    // A crash before this leaves an older epoch: its successors are found behind it.
    VERGER_RETURN_IF_ERROR(stored_.store(Checkpoint::kEpoch, newest.value()));
  }
  return {};
}

Result<void> LogWriter::flush_now() {
  VERGER_RETURN_IF_ERROR(complete_flush());
  VERGER_RETURN_IF_ERROR(prepare_flush());
  return complete_flush();
}

Result<void> LogWriter::roll(RollOrder order, bool start_next) {
  // Epochs must be known before the chunk they are in is out of flush's sight.
  VERGER_RETURN_IF_ERROR(flush_now());
  const std::lock_guard structure(chunks_.structure());
  VERGER_TRY(auto completed, active_->complete());
  append_position_ = completed->end_position().value();
  active_.reset();
  if (start_next && order == RollOrder::kNewChunkFirst) {
    // A crash now leaves an empty chunk behind writer.chk; opening removes it and continues the
    // completed one.
    VERGER_TRY(active_, ActiveChunk::create(parts_.files, parts_.directory, next_header(),
                                            parts_.random, parts_.options.hash_in_background));
  }
  // A crash before this leaves writer.chk inside a completed chunk, which is then reopened; after
  // it, on a boundary without or with the next chunk.
  VERGER_RETURN_IF_ERROR(stored_.store(Checkpoint::kWriter, append_position_));
  chunks_.put(std::move(completed));
  if (active_) {
    chunks_.put(active_->chunk());
  } else if (start_next) {
    VERGER_RETURN_IF_ERROR(start_chunk(next_header()));
  }
  end_.store(append_position_, std::memory_order_release);
  return {};
}

Result<std::vector<LogPosition>> LogWriter::append(std::span<Prepare> prepares) {
  VERGER_RETURN_IF_ERROR(check_writable());
  std::int64_t total = 0;
  for (const Prepare& prepare : prepares) {
    VERGER_RETURN_IF_ERROR(check_prepare(prepare));
    total += static_cast<std::int64_t>(record_size(Record(prepare))) + kFramingSize;
  }
  if (total > parts_.chunk_size) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("a write of {} bytes does not fit into a chunk of {}; write fewer "
                             "events at once",
                             total, parts_.chunk_size)};
  }
  std::vector<LogPosition> positions;
  if (prepares.empty()) {
    return positions;
  }
  if (active_ && !active_->fits(total)) {
    VERGER_RETURN_IF_ERROR(guarded(
        roll(prepares.size() == 1 ? RollOrder::kNewChunkFirst : RollOrder::kWriterFirst, true)));
  }
  VERGER_RETURN_IF_ERROR(guarded(ensure_active()));
  scratch_.clear();
  positions.reserve(prepares.size());
  const LogPosition first(append_position_);
  for (Prepare& prepare : prepares) {
    prepare.position = first + static_cast<std::int64_t>(scratch_.size());
    if (prepare.transaction_position == kNoPosition) {
      prepare.transaction_position = first;
    }
    append_framed(scratch_, Record(prepare));
    positions.push_back(prepare.position);
  }
  VERGER_RETURN_IF_ERROR(guarded(append_bytes(scratch_)));
  return positions;
}

Result<LogPosition> LogWriter::append(Record record) {
  VERGER_RETURN_IF_ERROR(check_writable());
  const auto size = static_cast<std::int64_t>(record_size(record)) + kFramingSize;
  if (active_ && !active_->fits(size)) {
    VERGER_RETURN_IF_ERROR(guarded(roll(RollOrder::kNewChunkFirst, true)));
  }
  VERGER_RETURN_IF_ERROR(guarded(ensure_active()));
  const LogPosition position(append_position_);
  if (auto* commit = std::get_if<Commit>(&record)) {
    commit->position = position;
    commit->sort_key = position.value();
  } else {
    std::get<SystemRecord>(record).position = position;
  }
  scratch_.clear();
  append_framed(scratch_, record);
  VERGER_RETURN_IF_ERROR(guarded(append_bytes(scratch_)));
  return position;
}

Result<Epoch> LogWriter::append_epoch(Epoch epoch, std::int64_t expected) {
  // The text holds the position, and the position depends on whether the text fits.
  epoch.position = append_position();
  const auto size = static_cast<std::int64_t>(encode_epoch_json(epoch).size()) + 32 + kFramingSize;
  if (active_ && !active_->fits(size)) {
    VERGER_RETURN_IF_ERROR(guarded(roll(RollOrder::kNewChunkFirst, true)));
  }
  VERGER_RETURN_IF_ERROR(guarded(ensure_active()));
  epoch.position = append_position();
  const std::string json = encode_epoch_json(epoch);
  VERGER_RETURN_IF_ERROR(
      append(Record(SystemRecord{epoch.position, epoch.timestamp, as_bytes(json)})));
  unflushed_epochs_.push_back(epoch);

  namespace flags = prepare_flags;
  Prepare event;
  event.flags = flags::kData | flags::kTransactionBegin | flags::kTransactionEnd |
                flags::kIsCommitted | flags::kIsJson;
  event.transaction_position = kNoPosition;
  event.expected_version = expected;
  event.stream = kEpochStream;
  event.event_id = parts_.random.uuid();
  event.correlation_id = parts_.random.uuid();
  event.timestamp = epoch.timestamp;
  event.type = kEpochStream;
  event.data = as_bytes(json);
  VERGER_RETURN_IF_ERROR(append(std::span(&event, 1)));
  VERGER_RETURN_IF_ERROR(flush());
  checkpoints_.raise_proposal(epoch.number.value());
  return epoch;
}

Result<void> LogWriter::flush() {
  VERGER_RETURN_IF_ERROR(check_writable());
  return guarded(flush_now());
}

Result<std::shared_ptr<LogFlush>> LogWriter::begin_flush() {
  VERGER_RETURN_IF_ERROR(check_writable());
  VERGER_RETURN_IF_ERROR(guarded(complete_flush()));
  VERGER_RETURN_IF_ERROR(guarded(prepare_flush()));
  return flush_under_way_ ? flush_under_way_->flush : nullptr;
}

Result<void> LogWriter::finish_flush() {
  VERGER_RETURN_IF_ERROR(check_writable());
  return guarded(complete_flush());
}

Result<void> LogWriter::complete_chunk() {
  VERGER_RETURN_IF_ERROR(check_writable());
  return guarded(has_records_in_chunk() ? roll(RollOrder::kWriterFirst, true) : ensure_active());
}

Result<void> LogWriter::flush_checkpoints() {
  VERGER_RETURN_IF_ERROR(check_writable());
  const auto values = checkpoints_.values();
  // Never above writer.chk: the server refuses such a directory.
  const auto stored_writer = stored_.value(Checkpoint::kWriter);
  VERGER_RETURN_IF_ERROR(
      stored_.store(Checkpoint::kChaser, std::min(values.chaser.value(), stored_writer)));
  if (values.epoch.value() <= stored_writer) {
    VERGER_RETURN_IF_ERROR(stored_.store(Checkpoint::kEpoch, values.epoch.value()));
  }
  return stored_.store(Checkpoint::kProposal, values.proposal);
}

Result<void> LogWriter::publish_chaser() {
  VERGER_RETURN_IF_ERROR(check_writable());
  // writer.chk is on the disk up to there: whichever value a power cut leaves, it is not above it.
  const auto processed = checkpoints_.values().chaser.value();
  return stored_.write(Checkpoint::kChaser,
                       std::min(processed, stored_.value(Checkpoint::kWriter)));
}

Result<void> LogWriter::truncate(LogPosition position) {
  VERGER_RETURN_IF_ERROR(check_writable());
  VERGER_RETURN_IF_ERROR(flush());
  if (position > end()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("cannot truncate to {}: the log ends at {}", position, end())};
  }
  const std::lock_guard structure(chunks_.structure());
  VERGER_TRY(const auto listing, list_chunk_files(parts_.files, parts_.directory));
  VERGER_TRY(auto stored, CheckpointFiles::load(parts_.files, parts_.directory));
  const Snapshot snapshot{std::move(stored), listing};
  LogOptions options = parts_.options;
  options.chunk_size = parts_.chunk_size;
  VERGER_TRY(const auto plan,
             plan_truncation(parts_.files, parts_.directory, snapshot, options, position));

  // From the first change on readers of what goes are refused, and the writer's own state is void
  // should anything fail in the middle: the next opening finishes it.
  active_.reset();
  chunks_.refuse_from(plan.first_removed);
  LiveChunks::Chunks kept;
  std::shared_ptr<const Chunk> cut;
  for (const auto& chunk : chunks_.all()) {
    if (chunk->start() >= plan.first_removed) {
      continue;
    }
    if (plan.cut && chunk->path().filename() == *plan.cut) {
      ChunkAccess::publish(*chunk, plan.keep);
      cut = chunk;
    } else {
      kept.push_back(chunk);
    }
  }
  end_.store(plan.target.value(), std::memory_order_release);
  const auto cut_files = [&]() -> Result<void> {
    VERGER_RETURN_IF_ERROR(carry_out(parts_.files, parts_.directory, stored_, plan));
    if (cut) {
      VERGER_TRY(auto reopened, Chunk::open_active(parts_.files, cut->path(), plan.keep));
      VERGER_TRY(active_,
                 ActiveChunk::open(parts_.files, reopened, parts_.options.hash_in_background));
      kept.push_back(std::move(reopened));
    }
    return {};
  };
  const auto done = guarded(cut_files());
  chunks_.replace_all(std::move(kept));
  append_position_ = plan.target.value();
  unflushed_epochs_.clear();
  epochs_.truncate(plan.target);
  checkpoints_.truncate(plan.target, plan.epoch);
  return done;
}

Result<void> LogWriter::append_framed_records(ByteView framed, std::span<const Epoch> epochs) {
  VERGER_RETURN_IF_ERROR(guarded(append_bytes(framed)));
  unflushed_epochs_.insert(unflushed_epochs_.end(), epochs.begin(), epochs.end());
  return {};
}

Result<void> LogWriter::end_chunk() { return guarded(roll(RollOrder::kWriterFirst, false)); }

Result<void> LogWriter::complete_filled_chunk() {
  if (has_records_in_chunk() && active_->chunk()->end_position() == append_position()) {
    return end_chunk();
  }
  return {};
}

Result<void> LogWriter::start_chunk_as(const ChunkHeader& header) {
  // An empty chunk of our own making gives way: the rename replaces it.
  const std::lock_guard structure(chunks_.structure());
  active_.reset();
  return guarded(start_chunk(header));
}

Result<void> LogWriter::store_end(LogPosition end) {
  return stored_.store(Checkpoint::kWriter, end.value());
}

void LogWriter::move_to(LogPosition end) {
  append_position_ = end.value();
  end_.store(end.value(), std::memory_order_release);
}

}  // namespace verger::log::detail
