#include "engine/scavenge/accumulator.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace verger::scavenge {
namespace {

/// What the summaries of all chunks together hold, apart from what each thread is reading.
constexpr std::size_t kMostSummaries = std::size_t{8} << 20U;
/// Chunks that are read, or have been read and wait to be taken: as many as are compared with their
/// checksums together, for which the first one may have to wait.
constexpr std::size_t kMostChunksAhead = FileVerification::kMostFiles;

}  // namespace

Accumulator::Accumulator(RunContext& context, std::optional<std::int32_t> done_chunk)
    : context_(context),
      chunk_(done_chunk ? *done_chunk + 1 : 0),
      next_(chunk_),
      ahead_(bounds()),
      filling_(std::make_unique<detail::AccumulatedBatch>(context.options.accumulation_batch)),
      spare_(std::make_unique<detail::AccumulatedBatch>(context.options.accumulation_batch)),
      preparation_(context),
      writer_(context) {
  if (context_.options.works_ahead()) {
    checksums_.emplace(context_);
    storing_.emplace(
        [this](detail::AccumulatedBatch& batch) { batch.stored = writer_.write(batch); });
  }
  const auto last = context_.chunk_of(context_.point.position);
  context_.progress.total = chunk_ <= last ? static_cast<std::uint64_t>(last - chunk_ + 1) : 0;
}

Accumulator::Ahead::Bounds Accumulator::bounds() const {
  const auto& options = context_.options;
  return {.threads = options.chunks_read_at_once(),
          .sources = options.works_ahead() ? kMostChunksAhead : 1,
          .bytes = kMostSummaries};
}

detail::ChunkSummary Accumulator::Source::read(std::uint32_t records) {
  auto summary = reader->read(records);
  has_records = has_records || !summary.records.empty();
  if (summary.ended || summary.error) {
    reader->free_memory();
  }
  return summary;
}

Result<StepOutcome> Accumulator::step(Budget budget) {
  auto outcome = advance(budget);
  if (!outcome) {
    VERGER_RETURN_IF_ERROR(collect_stored(/*wait=*/true));  // it comes before what failed
  }
  return outcome;
}

Result<StepOutcome> Accumulator::advance(Budget budget) {
  VERGER_RETURN_IF_ERROR(context_.check_stop());
  VERGER_RETURN_IF_ERROR(collect_stored(/*wait=*/false));
  VERGER_RETURN_IF_ERROR(ahead_.open([this] { return open_next(); }));
  if (ahead_.empty()) {
    VERGER_RETURN_IF_ERROR(collect_stored(/*wait=*/true));
    context_.state.forget_seen();
    return StepOutcome{StepOutcome::Kind::kDone, {}};
  }
  VERGER_RETURN_IF_ERROR(
      ahead_.step(budget.units, [this](detail::ChunkSummary& summary, bool may_wait) {
        return take_part(summary, may_wait);
      }));
  if (complete_) {
    VERGER_RETURN_IF_ERROR(store_filled());
  }
  if (!ahead_.empty() && ahead_.first_is_taken()) {
    ahead_.drop_first();
    ++chunk_;
    if (point_reached_) {
      ahead_.drop_all();
    }
  }
  begin_checksums_ahead();
  if (const auto rest = context_.throttle.rest_due(); rest.count() > 0) {
    return StepOutcome{StepOutcome::Kind::kRest, rest};
  }
  return StepOutcome{};
}

Result<std::optional<Accumulator::Ahead::Opened>> Accumulator::open_next() {
  const auto size = std::int64_t{context_.parts.log.chunk_size()};
  const LogPosition start(next_ * size);
  if (point_reached_ || start > context_.point.position) {
    return std::optional<Ahead::Opened>();
  }
  auto chunk = context_.parts.log.chunk_at(start);
  if (chunk == nullptr) {
    return Error{Errc::kCorruption, fmt::format("{}: no chunk file holds log position {}",
                                                context_.parts.log.directory().string(), start)};
  }
  VERGER_TRY(auto checksum, start_checksum(chunk));
  VERGER_TRY(
      auto reader,
      detail::ChunkReader::open(
          std::move(chunk), {.start = start, .end = start + size, .point = context_.point.position},
          context_.parts.index.options().hash, std::move(checksum)));
  ++next_;
  return Ahead::Opened{
      .source = {.reader = std::move(reader), .started = context_.parts.clock.monotonic()}};
}

Result<bool> Accumulator::take_part(detail::ChunkSummary& summary, bool may_wait) {
  if (complete_ || (summary.ended && !may_wait && checksums_ &&
                    !checksums_->has_compared(ahead_.first().reader->chunk()))) {
    return false;
  }
  VERGER_RETURN_IF_ERROR(context_.check_stop());
  VERGER_RETURN_IF_ERROR(take(summary));
  if (summary.ended) {
    VERGER_RETURN_IF_ERROR(close_chunk());
  } else if (filling_->pending.full()) {
    VERGER_RETURN_IF_ERROR(finish_batch());
  }
  return true;
}

Result<std::optional<log::ChunkChecksum>> Accumulator::start_checksum(
    const std::shared_ptr<const log::Chunk>& chunk) {
  std::optional<log::ChunkChecksum> own;
  if (checksums_ || !context_.is_unchecked(*chunk)) {
    return own;
  }
  if (chunk->start() == chunk->end()) {
    own.emplace(chunk, context_.options.hash_in_background);
  } else {  // of a merged chunk only a part is read at a time
    VERGER_RETURN_IF_ERROR(chunk->verify_md5([this] { return context_.check_stop(); }));
    context_.note_sound(*chunk);
  }
  return own;
}

void Accumulator::begin_checksums_ahead() {
  if (!checksums_) {
    return;
  }
  std::vector<const log::Chunk*> chunks;
  for (const auto& source : ahead_.sources()) {
    chunks.push_back(&source.reader->chunk());
    needs_tables_ = needs_tables_ || source.has_records;
  }
  checksums_->begin(chunks, needs_tables_);
}

Result<void> Accumulator::check_tables() {
  if (checksums_) {
    VERGER_RETURN_IF_ERROR(checksums_->finish_tables());
  }
  return context_.check_tables();
}

Result<void> Accumulator::finish_checksum() {
  auto& reader = *ahead_.first().reader;
  const auto& chunk = reader.chunk();
  if (!context_.is_unchecked(chunk)) {
    return {};
  }
  VERGER_RETURN_IF_ERROR(checksums_ ? checksums_->finish(chunk) : reader.finish_checksum());
  context_.note_sound(chunk);
  return {};
}

Result<void> Accumulator::take(const detail::ChunkSummary& summary) {
  if (summary.range) {
    range_ = range_ ? TimeRange{std::min(range_->min, summary.range->min),
                                std::max(range_->max, summary.range->max)}
                    : *summary.range;
  }
  for (const auto& record : summary.without_number) {
    if (context_.without_number.size() < RunContext::kMostWithoutNumber) {
      context_.without_number.push_back(
          {record.position, std::string(summary.text_of(record.stream)), record.number});
    }
  }
  counts_.records += summary.count;
  counts_.originals += summary.originals;
  counts_.metadatas += summary.metadatas;
  counts_.tombstones += summary.tombstones;
  context_.progress.records_accumulated += summary.count;
  std::size_t name = 0;
  const auto note_up_to = [&](std::size_t end) {
    for (; name < end; ++name) {
      note(summary.text_of(summary.names[name].name), summary.names[name].key);
    }
  };
  for (const auto& record : summary.records) {
    note_up_to(record.names_before);
    settle();
    filling_->pending.add(record, summary.text_of(record.metastream));
  }
  note_up_to(summary.names.size());
  point_reached_ = summary.point_reached;
  if (summary.error) {
    if (summary.error->code == Errc::kUnsupported) {
      // A record that cannot be may be one that was damaged.
      VERGER_RETURN_IF_ERROR(finish_checksum());
    }
    return *summary.error;
  }
  return {};
}

Result<void> Accumulator::close_chunk() {
  VERGER_RETURN_IF_ERROR(finish_checksum());
  filling_->ended = {.number = chunk_,
                     .range = std::exchange(range_, std::nullopt),
                     .counts = std::exchange(counts_, {}),
                     .started = ahead_.first().started};
  return finish_batch();
}

Result<void> Accumulator::finish_batch() {
  settle();
  if (!filling_->pending.records().empty()) {
    VERGER_RETURN_IF_ERROR(check_tables());
  }
  VERGER_RETURN_IF_ERROR(preparation_.prepare(*filling_));
  complete_ = true;
  return {};
}

Result<void> Accumulator::store_filled() {
  VERGER_RETURN_IF_ERROR(collect_stored(/*wait=*/true));
  auto batch = std::exchange(filling_, std::move(spare_));
  complete_ = false;
  if (storing_) {
    storing_->give(std::move(batch));
    return {};
  }
  batch->stored = writer_.write(*batch);
  return finish_stored(std::move(batch));
}

Result<void> Accumulator::collect_stored(bool wait) {
  auto batch = !storing_ ? nullptr : wait ? storing_->take() : storing_->take_done();
  return batch == nullptr ? Result<void>{} : finish_stored(std::move(batch));
}

Result<void> Accumulator::finish_stored(std::unique_ptr<detail::AccumulatedBatch> batch) {
  spare_ = std::move(batch);
  const bool ended = spare_->ended.has_value();
  auto stored = std::exchange(spare_->stored, {});
  spare_->clear();
  VERGER_RETURN_IF_ERROR(stored);
  if (ended) {
    context_.progress.done = ++chunks_;
    return context_.unit_finished(Stage::kAccumulating, chunks_);
  }
  return {};
}

void Accumulator::note(std::string_view stream, const detail::SeenNames::Key& key) {
  context_.state.expect(key);
  if (filling_->pending.add_name(stream, key)) {
    settle();
  }
}

void Accumulator::settle() {
  filling_->pending.settle([this](std::string_view name, const detail::SeenNames::Key& key) {
    return !context_.state.seen_before(name, key);
  });
}

}  // namespace verger::scavenge
