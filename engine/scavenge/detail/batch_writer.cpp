#include "engine/scavenge/detail/batch_writer.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "engine/base/failpoint.h"
#include "engine/streams/stream_names.h"

namespace verger::scavenge::detail {
namespace {

constexpr double kReplacedWeight = 2;

double seconds_of(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

BatchWriter::BatchWriter(RunContext& context) : context_(context) {}

Result<void> BatchWriter::write(AccumulatedBatch& batch) {
  if (!in_transaction_) {
    VERGER_RETURN_IF_ERROR(context_.state.begin());
    in_transaction_ = true;
  }
  if (!batch.pending.empty()) {
    VERGER_RETURN_IF_ERROR(store(batch));
  }
  if (batch.ended) {
    VERGER_RETURN_IF_ERROR(end_chunk(*batch.ended));
  }
  return {};
}

Result<void> BatchWriter::end_chunk(const AccumulatedBatch::EndedChunk& chunk) {
  for (const auto& [number, weight] : weights_) {
    VERGER_RETURN_IF_ERROR(context_.state.add_weight(number, weight));
  }
  weights_.clear();
  if (chunk.range) {
    VERGER_RETURN_IF_ERROR(context_.state.set_time_range(chunk.number, *chunk.range));
  }
  VERGER_RETURN_IF_ERROR(context_.state.set_checkpoint({.point = context_.point,
                                                        .stage = Stage::kAccumulating,
                                                        .done_chunk = chunk.number,
                                                        .done_stream = {}}));
  VERGER_FAILPOINT("scavenge.accumulate.before-commit");
  const auto before_commit = context_.parts.clock.monotonic();
  VERGER_RETURN_IF_ERROR(context_.state.commit());
  in_transaction_ = false;
  report_chunk(chunk, before_commit);
  return {};
}

void BatchWriter::report_chunk(const AccumulatedBatch::EndedChunk& chunk, Monotonic before_commit) {
  const auto now = context_.parts.clock.monotonic();
  const auto total = seconds_of(now - chunk.started);
  const auto& counts = chunk.counts;
  context_.parts.out.debug(fmt::format(
      "SCAVENGING: accumulated {} records in chunk {}: {} originals, {} metadatas, {} tombstones; "
      "{:.0f} records per second, {:.3f} s for the commit",
      counts.records, chunk.number, counts.originals, counts.metadatas, counts.tombstones,
      total > 0 ? static_cast<double>(counts.records) / total : 0.0,
      seconds_of(now - before_commit)));
}

Result<void> BatchWriter::store(AccumulatedBatch& batch) {
  auto& pending = batch.pending;
  const auto pause = [this] { return context_.check_stop(); };
  VERGER_TRY(const bool noted, context_.state.note_streams(batch.streams, pause));
  if (!noted) {
    return store_in_order(pending);
  }
  batch.streams = {};  // its memory is needed for the limits
  auto& records = pending.records();
  std::uint64_t done = 0;
  for (auto& record : records) {
    if (done++ % kRecordsBetweenStops == 0) {
      VERGER_RETURN_IF_ERROR(pause());
    }
    VERGER_RETURN_IF_ERROR(apply_to_metastream(record, pending.text(record.metastream)));
  }
  std::vector<ScavengeState::LimitsOfStream> limits;  // tombstones leave them alone
  limits.reserve(batch.by_original.size());
  for (const auto place : batch.by_original) {
    if (done++ % kRecordsBetweenStops == 0) {
      VERGER_RETURN_IF_ERROR(pause());
    }
    const auto& record = records[place];
    VERGER_RETURN_IF_ERROR(apply_to_original(record, pending.text(record.metastream), &limits));
  }
  return context_.state.set_limits(limits, pause);
}

Result<void> BatchWriter::store_in_order(PendingRecords& pending) {
  std::uint32_t name = 0;
  const auto& names = pending.names();
  const auto note_up_to = [&](std::size_t end) -> Result<void> {
    for (; name < end; ++name) {
      if (name % kRecordsBetweenStops == 0) {
        VERGER_RETURN_IF_ERROR(context_.check_stop());
      }
      VERGER_RETURN_IF_ERROR(report_collision(pending.text(names[name])));
    }
    return {};
  };
  std::ranges::sort(pending.records(), {}, &PendingRecord::position);
  std::uint64_t done = 0;
  for (auto& record : pending.records()) {
    if (done++ % kRecordsBetweenStops == 0) {
      VERGER_RETURN_IF_ERROR(context_.check_stop());
    }
    VERGER_RETURN_IF_ERROR(note_up_to(record.names_before));
    const auto metastream = pending.text(record.metastream);
    VERGER_RETURN_IF_ERROR(apply_to_metastream(record, metastream));
    VERGER_RETURN_IF_ERROR(apply_to_original(record, metastream, nullptr));
  }
  return note_up_to(names.size());
}

void BatchWriter::add_weight(LogPosition position) {
  weights_[context_.chunk_of(position)] += kReplacedWeight;
}

Result<void> BatchWriter::report_collision(std::string_view stream) {
  VERGER_TRY(const auto partner, context_.state.note_stream(stream));
  if (partner) {
    context_.parts.out.info(fmt::format(
        "SCAVENGING: the streams \"{}\" and \"{}\" have the same hash", *partner, stream));
  }
  return {};
}

Result<void> BatchWriter::apply_to_metastream(PendingRecord& record, std::string_view name) {
  auto& state = context_.state;
  const StreamHandle metastream{record.metastream_hash,
                                state.is_collision(name) ? std::string(name) : std::string()};
  if (metastream.by_name()) {
    if (!order_) {
      order_.emplace(context_);
    }
    VERGER_RETURN_IF_ERROR(order_->look_up(record, name, metastream));
  }
  if (record.replaced != kNothingReplaced) {
    add_weight(record.replaced);
  }
  if (record.tombstone) {
    return state.set_metastream_tombstone(metastream);
  }
  if (!record.in_order) {
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

Result<void> BatchWriter::apply_to_original(const PendingRecord& record,
                                            std::string_view metastream,
                                            std::vector<ScavengeState::LimitsOfStream>* by_hash) {
  auto& state = context_.state;
  const auto name = streams::original_of(metastream);
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

}  // namespace verger::scavenge::detail
