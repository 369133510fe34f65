#include "engine/scavenge/accumulator.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "engine/base/failpoint.h"
#include "engine/streams/stream_names.h"

namespace verger::scavenge {
namespace {

constexpr std::uint64_t kRecordsBetweenRests = 1024;
/// What the summaries of all chunks together hold, apart from what each thread is reading.
constexpr std::size_t kMostSummaries = std::size_t{24} << 20U;
/// Chunks that are read, or have been read and wait to be taken: as many as are compared with their
/// checksums together, for which the first one may have to wait.
constexpr std::size_t kMostChunksAhead = FileVerification::kMostFiles;
/// How many numbers of a metastream are looked at for records out of order.
constexpr std::int64_t kOrderWindow = 100;
constexpr double kReplacedWeight = 2;

}  // namespace

Accumulator::Accumulator(RunContext& context, std::optional<std::int32_t> done_chunk)
    : context_(context),
      index_(context.parts.index, context.parts.log, context.point.position),
      chunk_(done_chunk ? *done_chunk + 1 : 0),
      next_(chunk_),
      ahead_(bounds()) {
  if (context_.options.works_ahead()) {
    checksums_.emplace(context_);
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
  VERGER_RETURN_IF_ERROR(context_.check_stop());
  VERGER_RETURN_IF_ERROR(ahead_.open([this] { return open_next(); }));
  if (ahead_.empty()) {
    context_.state.forget_seen();
    return StepOutcome{StepOutcome::Kind::kDone, {}};
  }
  VERGER_RETURN_IF_ERROR(
      ahead_.step(budget.units, [this](detail::ChunkSummary& summary, bool may_wait) {
        return take_part(summary, may_wait);
      }));
  if (ahead_.first_is_taken()) {
    ahead_.drop_first();
    ++chunk_;
    if (point_reached_) {
      ahead_.drop_all();
    }
    VERGER_RETURN_IF_ERROR(context_.unit_finished(Stage::kAccumulating, chunks_));
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
  if (!in_chunk_) {
    VERGER_RETURN_IF_ERROR(context_.state.begin());
    in_chunk_ = true;
    range_.reset();
    counts_ = {};
  }
  if (summary.ended && !may_wait && checksums_ &&
      !checksums_->has_compared(ahead_.first().reader->chunk())) {
    return false;
  }
  VERGER_RETURN_IF_ERROR(context_.check_stop());
  VERGER_RETURN_IF_ERROR(take(summary));
  if (summary.ended) {
    VERGER_RETURN_IF_ERROR(close_chunk());
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
  const auto note_up_to = [&](std::size_t end) -> Result<void> {
    for (; name < end; ++name) {
      note(summary.text_of(summary.names[name].name), summary.names[name].key);
      if (pending_.full()) {
        VERGER_RETURN_IF_ERROR(carry_out());
      }
    }
    return {};
  };
  for (const auto& record : summary.records) {
    VERGER_RETURN_IF_ERROR(note_up_to(record.names_before));
    settle();
    pending_.add(record, summary.text_of(record.metastream));
    if (pending_.full()) {
      VERGER_RETURN_IF_ERROR(carry_out());
    }
  }
  VERGER_RETURN_IF_ERROR(note_up_to(summary.names.size()));
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
  VERGER_RETURN_IF_ERROR(carry_out());
  for (const auto& [chunk, weight] : weights_) {
    VERGER_RETURN_IF_ERROR(context_.state.add_weight(chunk, weight));
  }
  weights_.clear();
  if (range_) {
    VERGER_RETURN_IF_ERROR(context_.state.set_time_range(chunk_, *range_));
  }
  VERGER_RETURN_IF_ERROR(context_.state.set_checkpoint({.point = context_.point,
                                                        .stage = Stage::kAccumulating,
                                                        .done_chunk = chunk_,
                                                        .done_stream = {}}));
  VERGER_FAILPOINT("scavenge.accumulate.before-commit");
  const auto before_commit = context_.parts.clock.monotonic();
  VERGER_RETURN_IF_ERROR(context_.state.commit());
  in_chunk_ = false;
  report_chunk(before_commit);
  context_.progress.done = ++chunks_;
  return {};
}

void Accumulator::report_chunk(Monotonic before_commit) {
  const auto seconds = [](auto duration) {
    return std::chrono::duration<double>(duration).count();
  };
  const auto now = context_.parts.clock.monotonic();
  const auto total = seconds(now - ahead_.first().started);
  context_.parts.out.debug(fmt::format(
      "SCAVENGING: accumulated {} records in chunk {}: {} originals, {} metadatas, {} tombstones; "
      "{:.0f} records per second, {:.3f} s for the commit",
      counts_.records, chunk_, counts_.originals, counts_.metadatas, counts_.tombstones,
      total > 0 ? static_cast<double>(counts_.records) / total : 0.0,
      seconds(now - before_commit)));
}

void Accumulator::note(std::string_view stream, const detail::SeenNames::Key& key) {
  context_.state.expect(key);
  if (pending_.add_name(stream, key)) {
    settle();
  }
}

void Accumulator::settle() {
  pending_.settle([this](std::string_view name, const detail::SeenNames::Key& key) {
    return !context_.state.seen_before(name, key);
  });
}

void Accumulator::add_weight(LogPosition position) {
  weights_[context_.chunk_of(position)] += kReplacedWeight;
}

Result<void> Accumulator::carry_out() {
  if (pending_.empty()) {
    return {};
  }
  settle();
  const auto pause = [this] { return context_.check_stop(); };
  std::vector<ScavengeState::NamedHash> streams;
  streams.reserve(pending_.names().size());
  for (const auto& name : pending_.names()) {
    const auto text = pending_.text(name);
    streams.push_back({context_.state.hash(text), text});
  }
  VERGER_TRY(const bool noted, context_.state.note_streams(streams, pause));
  if (!noted) {
    VERGER_RETURN_IF_ERROR(carry_out_in_order());
    pending_.clear();
    return {};
  }
  if (!pending_.records().empty()) {
    VERGER_RETURN_IF_ERROR(check_tables());
  }
  // Records of one stream keep their order, which is that of their positions; those of different
  // streams do not touch each other, and weights are whole numbers.
  auto& records = pending_.records();
  const auto sort_by = [&records](StreamHash detail::PendingRecord::* hash) {
    std::ranges::sort(records, {}, [hash](const detail::PendingRecord& record) {
      return std::pair(static_cast<std::int64_t>((record.*hash).value()), record.position);
    });
  };
  sort_by(&detail::PendingRecord::metastream_hash);
  std::uint64_t done = 0;
  for (auto& record : records) {
    if (done++ % kRecordsBetweenRests == 0) {
      VERGER_RETURN_IF_ERROR(pause());
    }
    VERGER_RETURN_IF_ERROR(apply_to_metastream(record));
  }
  sort_by(&detail::PendingRecord::original_hash);
  std::vector<ScavengeState::LimitsOfStream> limits;  // tombstones leave them alone
  for (const auto& record : records) {
    if (done++ % kRecordsBetweenRests == 0) {
      VERGER_RETURN_IF_ERROR(pause());
    }
    VERGER_RETURN_IF_ERROR(apply_to_original(record, &limits));
  }
  VERGER_RETURN_IF_ERROR(context_.state.set_limits(limits, pause));
  pending_.clear();
  return {};
}

Result<void> Accumulator::carry_out_in_order() {
  std::uint32_t name = 0;
  const auto& names = pending_.names();
  const auto note_up_to = [&](std::size_t end) -> Result<void> {
    for (; name < end; ++name) {
      if (name % kRecordsBetweenRests == 0) {
        VERGER_RETURN_IF_ERROR(context_.check_stop());
      }
      VERGER_RETURN_IF_ERROR(report_collision(pending_.text(names[name])));
    }
    return {};
  };
  if (!pending_.records().empty()) {
    VERGER_RETURN_IF_ERROR(check_tables());
  }
  std::uint64_t done = 0;
  for (auto& record : pending_.records()) {
    if (done++ % kRecordsBetweenRests == 0) {
      VERGER_RETURN_IF_ERROR(context_.check_stop());
    }
    VERGER_RETURN_IF_ERROR(note_up_to(record.names_before));
    VERGER_RETURN_IF_ERROR(apply_to_metastream(record));
    VERGER_RETURN_IF_ERROR(apply_to_original(record, nullptr));
  }
  return note_up_to(names.size());
}

Result<void> Accumulator::report_collision(std::string_view stream) {
  VERGER_TRY(const auto partner, context_.state.note_stream(stream));
  if (partner) {
    context_.parts.out.info(fmt::format(
        "SCAVENGING: the streams \"{}\" and \"{}\" have the same hash", *partner, stream));
  }
  return {};
}

Result<void> Accumulator::apply_to_metastream(detail::PendingRecord& record) {
  auto& state = context_.state;
  const auto name = pending_.text(record.metastream);
  const StreamHandle metastream{record.metastream_hash,
                                state.is_collision(name) ? std::string(name) : std::string()};
  if (record.tombstone) {
    VERGER_RETURN_IF_ERROR(state.set_metastream_tombstone(metastream));
    VERGER_TRY(const auto last, index_.last_number(metastream, [name]() -> Result<std::string> {
      return std::string(name);
    }));
    if (last != kNoStream) {
      VERGER_RETURN_IF_ERROR(index_.forward(metastream, last.value(), 1, infos_));
      if (!infos_.empty()) {
        add_weight(infos_.front().position);
      }
    }
    return {};
  }
  VERGER_TRY(const auto order, order_of(record, metastream));
  record.in_order = order.in_order;
  if (order.replaced) {
    add_weight(*order.replaced);
  }
  if (!order.in_order) {
    context_.parts.out.info(
        fmt::format("SCAVENGING: metadata record {} of stream \"{}\" at {} is out of order",
                    record.number, name, record.position));
    return {};
  }
  if (record.number.value() > 0) {
    return state.set_metastream_discard(metastream, DiscardPoint::before(record.number));
  }
  return {};
}

Result<void> Accumulator::apply_to_original(const detail::PendingRecord& record,
                                            std::vector<ScavengeState::LimitsOfStream>* by_hash) {
  auto& state = context_.state;
  const auto name = streams::original_of(pending_.text(record.metastream));
  if (!record.in_order || streams::is_metastream(name)) {
    return {};
  }
  const StreamHandle original{record.original_hash,
                              state.is_collision(name) ? std::string(name) : std::string()};
  if (record.tombstone) {
    return state.set_tombstone(original);
  }
  const auto limit = [](std::int64_t value) {
    return value < 0 ? std::nullopt : std::optional(value);
  };
  if (by_hash != nullptr && !original.by_name()) {
    by_hash->push_back({.hash = record.original_hash,
                        .max_age_seconds = limit(record.max_age_seconds),
                        .max_count = limit(record.max_count),
                        .truncate_before = limit(record.truncate_before)});
    return {};
  }
  OriginalData limits;
  limits.max_age_seconds = limit(record.max_age_seconds);
  limits.max_count = limit(record.max_count);
  limits.truncate_before = limit(record.truncate_before);
  return state.set_limits(original, limits);
}

Result<Accumulator::MetadataOrder> Accumulator::order_of(const detail::PendingRecord& record,
                                                         const StreamHandle& metastream) {
  const auto number = record.number;
  const auto from = std::max<std::int64_t>(number.value() - 1, 0);
  VERGER_RETURN_IF_ERROR(index_.forward(metastream, from, kOrderWindow, infos_));
  MetadataOrder order;
  for (const auto& info : infos_) {
    if (info.position < record.position && info.number >= number) {
      return MetadataOrder{.in_order = false, .replaced = record.position};
    }
  }
  if (!infos_.empty() && infos_.front().number < number &&
      infos_.front().position < record.position) {
    order.replaced = infos_.front().position;
  }
  return order;
}

}  // namespace verger::scavenge
