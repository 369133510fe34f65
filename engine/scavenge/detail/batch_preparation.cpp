#include "engine/scavenge/detail/batch_preparation.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace verger::scavenge::detail {

BatchPreparation::BatchPreparation(RunContext& context) : context_(context), order_(context) {}

Result<void> BatchPreparation::prepare(AccumulatedBatch& batch) {
  auto& pending = batch.pending;
  batch.streams.reserve(pending.names().size());
  for (const auto& name : pending.names()) {
    const auto text = pending.text(name);
    batch.streams.push_back({context_.state.hash(text), text});
  }
  std::ranges::sort(batch.streams, {},
                    [](const ScavengeState::NamedHash& stream) { return row_key(stream.hash); });
  // Records of one stream keep their order, which is that of their positions; those of different
  // streams do not touch each other, and weights are whole numbers.
  auto& records = pending.records();
  std::ranges::sort(records, {}, [](const PendingRecord& record) {
    return std::pair(row_key(record.metastream_hash), record.position);
  });
  std::uint64_t done = 0;
  for (auto& record : records) {
    if (done++ % kRecordsBetweenStops == 0) {
      VERGER_RETURN_IF_ERROR(context_.check_stop());
    }
    VERGER_RETURN_IF_ERROR(order_.look_up(record, pending.text(record.metastream),
                                          {.hash = record.metastream_hash, .name = {}}));
  }
  batch.by_original.resize(records.size());
  std::iota(batch.by_original.begin(), batch.by_original.end(), 0U);
  std::ranges::sort(batch.by_original, {}, [&records](std::uint32_t place) {
    const auto& record = records[place];
    return std::pair(row_key(record.original_hash), record.position);
  });
  return {};
}

}  // namespace verger::scavenge::detail
