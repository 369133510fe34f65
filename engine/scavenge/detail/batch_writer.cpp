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

constexpr std::uint64_t kRecordsBetweenPauses = 1024;
/// How many numbers of a metastream are looked at for records out of order.
constexpr std::int64_t kOrderWindow = 100;
constexpr double kReplacedWeight = 2;

double seconds_of(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

BatchWriter::BatchWriter(RunContext& context)
    : context_(context), index_(context.parts.index, context.parts.log, context.point.position) {}

Result<void> BatchWriter::write(AccumulatedBatch& batch) {
  if (!in_transaction_) {
    VERGER_RETURN_IF_ERROR(context_.state.begin());
    in_transaction_ = true;
  }
  if (!batch.pending.empty()) {
    VERGER_RETURN_IF_ERROR(store(batch.pending));
  }
  if (batch.ended) {
    VERGER_RETURN_IF_ERROR(end_chunk(*batch.ended));
  }
  batch.clear();
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

Result<void> BatchWriter::store(PendingRecords& pending) {
  const auto pause = [this] { return context_.check_stop(); };
  std::vector<ScavengeState::NamedHash> streams;
  streams.reserve(pending.names().size());
  for (const auto& name : pending.names()) {
    const auto text = pending.text(name);
    streams.push_back({context_.state.hash(text), text});
  }
  VERGER_TRY(const bool noted, context_.state.note_streams(streams, pause));
  if (!noted) {
    return store_in_order(pending);
  }
  // Records of one stream keep their order, which is that of their positions; those of different
  // streams do not touch each other, and weights are whole numbers.
  auto& records = pending.records();
  const auto sort_by = [&records](StreamHash PendingRecord::* hash) {
    std::ranges::sort(records, {}, [hash](const PendingRecord& record) {
      return std::pair(static_cast<std::int64_t>((record.*hash).value()), record.position);
    });
  };
  sort_by(&PendingRecord::metastream_hash);
  std::uint64_t done = 0;
  for (auto& record : records) {
    if (done++ % kRecordsBetweenPauses == 0) {
      VERGER_RETURN_IF_ERROR(pause());
    }
    VERGER_RETURN_IF_ERROR(apply_to_metastream(record, pending.text(record.metastream)));
  }
  sort_by(&PendingRecord::original_hash);
  std::vector<ScavengeState::LimitsOfStream> limits;  // tombstones leave them alone
  for (const auto& record : records) {
    if (done++ % kRecordsBetweenPauses == 0) {
      VERGER_RETURN_IF_ERROR(pause());
    }
    VERGER_RETURN_IF_ERROR(apply_to_original(record, pending.text(record.metastream), &limits));
  }
  return context_.state.set_limits(limits, pause);
}

Result<void> BatchWriter::store_in_order(PendingRecords& pending) {
  std::uint32_t name = 0;
  const auto& names = pending.names();
  const auto note_up_to = [&](std::size_t end) -> Result<void> {
    for (; name < end; ++name) {
      if (name % kRecordsBetweenPauses == 0) {
        VERGER_RETURN_IF_ERROR(context_.check_stop());
      }
      VERGER_RETURN_IF_ERROR(report_collision(pending.text(names[name])));
    }
    return {};
  };
  std::uint64_t done = 0;
  for (auto& record : pending.records()) {
    if (done++ % kRecordsBetweenPauses == 0) {
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

Result<BatchWriter::MetadataOrder> BatchWriter::order_of(const PendingRecord& record,
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

}  // namespace verger::scavenge::detail
