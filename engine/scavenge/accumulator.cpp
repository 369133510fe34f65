#include "engine/scavenge/accumulator.h"

#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/streams/metadata.h"
#include "engine/streams/stream_names.h"

namespace verger::scavenge {
namespace {

constexpr std::uint64_t kRecordsBetweenRests = 1024;
/// How many numbers of a metastream are looked at for records out of order.
constexpr std::int64_t kOrderWindow = 100;
constexpr double kReplacedWeight = 2;

Error refused(std::string_view what, const log::Prepare& prepare) {
  return {Errc::kUnsupported,
          fmt::format("{} in stream \"{}\" at log position {}: the server cannot scavenge this "
                      "database either; records and index are untouched",
                      what, prepare.stream, prepare.position)};
}

}  // namespace

Accumulator::Accumulator(RunContext& context, std::optional<std::int32_t> done_chunk)
    : context_(context),
      index_(context.parts.index, context.parts.log, context.point.position),
      chunk_(done_chunk ? *done_chunk + 1 : 0) {
  const auto last = context_.chunk_of(context_.point.position);
  context_.progress.total = chunk_ <= last ? static_cast<std::uint64_t>(last - chunk_ + 1) : 0;
}

Result<StepOutcome> Accumulator::step(Budget budget) {
  for (std::uint32_t units = 0; units < budget.units; ++units) {
    if (!scanner_) {
      VERGER_TRY(const bool more, open_chunk());
      if (!more) {
        return StepOutcome{StepOutcome::Kind::kDone, {}};
      }
    }
    VERGER_TRY(const auto record, scanner_->next());
    if (!record) {
      VERGER_RETURN_IF_ERROR(close_chunk());
      continue;
    }
    const auto position = record->position();
    if (position > context_.point.position) {
      return Error{Errc::kCorruption,
                   fmt::format("there is a record at log position {} behind the scavenge point at "
                               "{} in its chunk: the point has to be the last record of a "
                               "completed chunk",
                               position, context_.point.position)};
    }
    VERGER_RETURN_IF_ERROR(take(*record));
    ++context_.progress.records_accumulated;
    ++counts_.records;
    point_reached_ = position == context_.point.position;
    // Inside a merged chunk the record after a gap belongs to a later logical chunk; like the
    // server's, this scan takes it in both.
    if (point_reached_ || record->next >= chunk_end_) {
      VERGER_RETURN_IF_ERROR(close_chunk());
      continue;
    }
    if (++records_ % kRecordsBetweenRests == 0) {
      VERGER_RETURN_IF_ERROR(context_.check_stop());
      if (const auto rest = context_.throttle.rest_due(); rest.count() > 0) {
        return StepOutcome{StepOutcome::Kind::kRest, rest};
      }
    }
  }
  return StepOutcome{};
}

Result<bool> Accumulator::open_chunk() {
  const auto size = std::int64_t{context_.parts.log.chunk_size()};
  const LogPosition start(chunk_ * size);
  if (point_reached_ || start > context_.point.position) {
    return false;
  }
  VERGER_RETURN_IF_ERROR(context_.check_stop());
  auto chunk = context_.parts.log.chunk_at(start);
  if (chunk == nullptr) {
    return Error{Errc::kCorruption, fmt::format("{}: no chunk file holds log position {}",
                                                context_.parts.log.directory().string(), start)};
  }
  chunk_end_ = start + size;
  VERGER_RETURN_IF_ERROR(start_checksum(chunk));
  file_ = chunk;
  VERGER_TRY(scanner_, log::ChunkScanner::open(std::move(chunk), start));
  VERGER_RETURN_IF_ERROR(context_.state.begin());
  range_.reset();
  records_ = 0;
  counts_ = {.started = context_.parts.clock.monotonic()};
  return true;
}

Result<void> Accumulator::start_checksum(const std::shared_ptr<const log::Chunk>& chunk) {
  checksum_.reset();
  verification_.reset();
  if (context_.is_unchecked(*chunk)) {
    if (ahead_ != nullptr && &ahead_->chunk() == chunk.get()) {
      verification_ = std::move(ahead_);
    } else if (chunk->start() == chunk->end()) {
      checksum_.emplace(chunk, context_.options.hash_in_background);
    } else {  // of a merged chunk only a part is read at a time
      VERGER_RETURN_IF_ERROR(chunk->verify_md5([this] { return context_.check_stop(); }));
      context_.note_sound(*chunk);
    }
  }
  look_ahead(*chunk);
  return {};
}

void Accumulator::look_ahead(const log::Chunk& chunk) {
  const auto next = chunk.end_position();
  if (!context_.options.hash_in_background || context_.options.threads == 1 ||
      next > context_.point.position) {
    return;
  }
  auto following = context_.parts.log.chunk_at(next);
  if (following != nullptr && context_.is_unchecked(*following) &&
      (ahead_ == nullptr || &ahead_->chunk() != following.get())) {
    ahead_ = std::make_unique<log::ChunkVerification>(std::move(following));
  }
}

Result<void> Accumulator::finish_checksum() {
  if (verification_ != nullptr) {
    VERGER_RETURN_IF_ERROR(verification_->finish([this] { return context_.check_stop(); }));
    verification_.reset();
    context_.note_sound(*file_);
  }
  if (checksum_) {
    VERGER_RETURN_IF_ERROR(checksum_->finish());
    checksum_.reset();
    context_.note_sound(*file_);
  }
  return {};
}

Result<void> Accumulator::take(const log::LogRecord& record) {
  if (checksum_) {
    VERGER_RETURN_IF_ERROR(checksum_->add(record));
  }
  const auto* prepare = record.prepare();
  if (prepare == nullptr) {
    return {};
  }
  auto added = add(*prepare);
  if (!added && added.error().code == Errc::kUnsupported) {
    // A record that cannot be may be one that was damaged.
    VERGER_RETURN_IF_ERROR(finish_checksum());
  }
  return added;
}

Result<void> Accumulator::close_chunk() {
  scanner_.reset();
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
  report_chunk(before_commit);
  ++chunk_;
  context_.progress.done = ++chunks_;
  return context_.unit_finished(Stage::kAccumulating, chunks_);
}

void Accumulator::report_chunk(Monotonic before_commit) {
  const auto seconds = [](auto duration) {
    return std::chrono::duration<double>(duration).count();
  };
  const auto now = context_.parts.clock.monotonic();
  const auto total = seconds(now - counts_.started);
  context_.parts.out.debug(fmt::format(
      "SCAVENGING: accumulated {} records in chunk {}: {} originals, {} metadatas, {} tombstones; "
      "{:.0f} records per second, {:.3f} s for the commit",
      counts_.records, chunk_, counts_.originals, counts_.metadatas, counts_.tombstones,
      total > 0 ? static_cast<double>(counts_.records) / total : 0.0,
      seconds(now - before_commit)));
}

Result<void> Accumulator::add(const log::Prepare& prepare) {
  if (!range_) {
    range_ = TimeRange{prepare.timestamp, prepare.timestamp};
  }
  range_->min = std::min(range_->min, prepare.timestamp);
  range_->max = std::max(range_->max, prepare.timestamp);
  if (prepare.event_number().value() < 0 && prepare.has(log::prepare_flags::kIsCommitted) &&
      prepare.position < context_.point.position &&
      context_.without_number.size() < RunContext::kMostWithoutNumber) {
    context_.without_number.push_back(
        {prepare.position, std::string(prepare.stream), prepare.event_number()});
  }
  if (prepare.has(log::prepare_flags::kStreamDelete)) {
    ++counts_.tombstones;
    return add_tombstone(prepare);
  }
  if (streams::is_metastream(prepare.stream)) {
    ++counts_.metadatas;
    return add_metadata(prepare);
  }
  ++counts_.originals;
  note(prepare.stream);
  return pending_.full() ? carry_out() : Result<void>{};
}

void Accumulator::note(std::string_view stream) {
  if (pending_.add_name(stream, context_.state.seen_key(stream))) {
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

Result<void> Accumulator::add_metadata(const log::Prepare& prepare) {
  if (prepare.event_number().value() < 0) {
    return refused("a metadata record of an explicit transaction", prepare);
  }
  const auto original = streams::original_of(prepare.stream);
  note(original);
  note(prepare.stream);
  settle();
  const auto metadata = streams::parse_metadata(prepare.data, prepare.version);
  detail::PendingRecord record;
  record.metastream_hash = context_.state.hash(prepare.stream);
  record.original_hash = context_.state.hash(original);
  record.number = prepare.event_number();
  record.position = prepare.position;
  record.max_age_seconds = metadata.max_age_seconds.value_or(-1);
  record.max_count = metadata.max_count.value_or(-1);
  record.truncate_before = metadata.truncate_before.value_or(-1);
  pending_.add(record, prepare.stream);
  return pending_.full() ? carry_out() : Result<void>{};
}

Result<void> Accumulator::add_tombstone(const log::Prepare& prepare) {
  if (streams::is_metastream(prepare.stream)) {
    return refused("a tombstone of a metastream", prepare);
  }
  if (prepare.event_number().value() < 0) {
    return refused("a tombstone without an event number", prepare);
  }
  const auto metastream = streams::metastream_of(prepare.stream);
  note(prepare.stream);
  note(metastream);
  settle();
  detail::PendingRecord record;
  record.tombstone = true;
  record.metastream_hash = context_.state.hash(metastream);
  record.original_hash = context_.state.hash(prepare.stream);
  record.number = prepare.event_number();
  record.position = prepare.position;
  pending_.add(record, metastream);
  return pending_.full() ? carry_out() : Result<void>{};
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
    VERGER_RETURN_IF_ERROR(context_.check_tables());
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
  for (const auto& record : records) {
    if (done++ % kRecordsBetweenRests == 0) {
      VERGER_RETURN_IF_ERROR(pause());
    }
    VERGER_RETURN_IF_ERROR(apply_to_original(record));
  }
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
    VERGER_RETURN_IF_ERROR(context_.check_tables());
  }
  std::uint64_t done = 0;
  for (auto& record : pending_.records()) {
    if (done++ % kRecordsBetweenRests == 0) {
      VERGER_RETURN_IF_ERROR(context_.check_stop());
    }
    VERGER_RETURN_IF_ERROR(note_up_to(record.names_before));
    VERGER_RETURN_IF_ERROR(apply_to_metastream(record));
    VERGER_RETURN_IF_ERROR(apply_to_original(record));
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

Result<void> Accumulator::apply_to_original(const detail::PendingRecord& record) {
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
