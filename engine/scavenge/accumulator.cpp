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
      VERGER_CHECK(close_chunk());
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
    if (const auto* prepare = record->prepare()) {
      VERGER_CHECK(add(*prepare));
    }
    ++context_.progress.records_accumulated;
    point_reached_ = position == context_.point.position;
    // Inside a merged chunk the record after a gap belongs to a later logical chunk; like the
    // server's, this scan takes it in both.
    if (point_reached_ || record->next >= chunk_end_) {
      VERGER_CHECK(close_chunk());
      continue;
    }
    if (++records_ % kRecordsBetweenRests == 0) {
      VERGER_CHECK(context_.check_stop());
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
  VERGER_CHECK(context_.check_stop());
  auto chunk = context_.parts.log.chunk_at(start);
  if (chunk == nullptr) {
    return Error{Errc::kCorruption, fmt::format("{}: no chunk file holds log position {}",
                                                context_.parts.log.directory().string(), start)};
  }
  chunk_end_ = start + size;
  VERGER_TRY(scanner_, log::ChunkScanner::open(std::move(chunk), start));
  VERGER_CHECK(context_.state.begin());
  range_.reset();
  records_ = 0;
  return true;
}

Result<void> Accumulator::close_chunk() {
  scanner_.reset();
  if (range_) {
    VERGER_CHECK(context_.state.set_time_range(chunk_, *range_));
  }
  VERGER_CHECK(context_.state.set_checkpoint({.point = context_.point,
                                              .stage = Stage::kAccumulating,
                                              .done_chunk = chunk_,
                                              .done_stream = {}}));
  VERGER_FAILPOINT("scavenge.accumulate.before-commit");
  VERGER_CHECK(context_.state.commit());
  ++chunk_;
  context_.progress.done = ++chunks_;
  return context_.unit_finished(Stage::kAccumulating, chunks_);
}

Result<void> Accumulator::add(const log::Prepare& prepare) {
  if (!range_) {
    range_ = TimeRange{prepare.timestamp, prepare.timestamp};
  }
  range_->min = std::min(range_->min, prepare.timestamp);
  range_->max = std::max(range_->max, prepare.timestamp);
  if (prepare.has(log::prepare_flags::kStreamDelete)) {
    return add_tombstone(prepare);
  }
  if (streams::is_metastream(prepare.stream)) {
    return add_metadata(prepare);
  }
  return note(prepare.stream);
}

Result<void> Accumulator::note(std::string_view stream) {
  VERGER_TRY(const auto partner, context_.state.note_stream(stream));
  if (partner) {
    context_.parts.out.info(fmt::format(
        "SCAVENGING: the streams \"{}\" and \"{}\" have the same hash", *partner, stream));
  }
  return {};
}

Result<void> Accumulator::add_weight(LogPosition position) {
  return context_.state.add_weight(context_.chunk_of(position), kReplacedWeight);
}

Result<void> Accumulator::add_metadata(const log::Prepare& prepare) {
  auto& state = context_.state;
  const auto original_name = streams::original_of(prepare.stream);
  VERGER_CHECK(note(original_name));
  VERGER_CHECK(note(prepare.stream));
  if (prepare.event_number().value() < 0) {
    return refused("a metadata record of an explicit transaction", prepare);
  }
  const auto metastream = state.handle_of(prepare.stream);
  VERGER_TRY(const auto order, order_of(prepare, metastream));
  if (order.replaced) {
    VERGER_CHECK(add_weight(*order.replaced));
  }
  if (!order.in_order) {
    context_.parts.out.info(
        fmt::format("SCAVENGING: metadata record {} of stream \"{}\" at {} is out of order",
                    prepare.event_number(), prepare.stream, prepare.position));
    return {};
  }
  if (!streams::is_metastream(original_name)) {
    const auto metadata = streams::parse_metadata(prepare.data, prepare.version);
    OriginalData limits;
    limits.max_age_seconds = metadata.max_age_seconds;
    limits.max_count = metadata.max_count;
    limits.truncate_before = metadata.truncate_before;
    VERGER_CHECK(state.set_limits(state.handle_of(original_name), limits));
  }
  if (prepare.event_number().value() > 0) {
    return state.set_metastream_discard(metastream, DiscardPoint::before(prepare.event_number()));
  }
  return {};
}

Result<Accumulator::MetadataOrder> Accumulator::order_of(const log::Prepare& prepare,
                                                         const StreamHandle& metastream) {
  const auto number = prepare.event_number();
  const auto from = std::max<std::int64_t>(number.value() - 1, 0);
  VERGER_CHECK(index_.forward(metastream, from, kOrderWindow, infos_));
  MetadataOrder order;
  for (const auto& info : infos_) {
    if (info.position < prepare.position && info.number >= number) {
      return MetadataOrder{.in_order = false, .replaced = prepare.position};
    }
  }
  if (!infos_.empty() && infos_.front().number < number &&
      infos_.front().position < prepare.position) {
    order.replaced = infos_.front().position;
  }
  return order;
}

Result<void> Accumulator::add_tombstone(const log::Prepare& prepare) {
  auto& state = context_.state;
  VERGER_CHECK(note(prepare.stream));
  if (streams::is_metastream(prepare.stream)) {
    return refused("a tombstone of a metastream", prepare);
  }
  if (prepare.event_number().value() < 0) {
    return refused("a tombstone without an event number", prepare);
  }
  VERGER_CHECK(state.set_tombstone(state.handle_of(prepare.stream)));
  name_ = streams::metastream_of(prepare.stream);
  VERGER_CHECK(note(name_));
  const auto metastream = state.handle_of(name_);
  VERGER_CHECK(state.set_metastream_tombstone(metastream));
  VERGER_TRY(const auto last, index_.last_number(metastream));
  if (last == kNoStream) {
    return {};
  }
  VERGER_CHECK(index_.forward(metastream, last.value(), 1, infos_));
  return infos_.empty() ? Result<void>{} : add_weight(infos_.front().position);
}

}  // namespace verger::scavenge
