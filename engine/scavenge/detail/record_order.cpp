#include "engine/scavenge/detail/record_order.h"

#include <algorithm>
#include <string>

namespace verger::scavenge::detail {
namespace {

/// How many numbers of a metastream are looked at for records out of order.
constexpr std::int64_t kOrderWindow = 100;

}  // namespace

RecordOrder::RecordOrder(const RunContext& context)
    : index_(context.parts.index, context.parts.log, context.point.position) {}

Result<void> RecordOrder::look_up(PendingRecord& record, std::string_view name,
                                  const StreamHandle& metastream) {
  record.in_order = true;
  record.replaced = kNothingReplaced;
  if (record.tombstone) {
    return look_up_tombstone(record, name, metastream);
  }
  const auto from = std::max<std::int64_t>(record.number.value() - 1, 0);
  VERGER_RETURN_IF_ERROR(index_.forward(metastream, from, kOrderWindow, found_));
  record.in_order = std::ranges::none_of(found_, [&record](const index::IndexEntry& entry) {
    return entry.position < record.position && entry.number >= record.number;
  });
  if (!record.in_order) {
    record.replaced = record.position;
  } else if (!found_.empty() && found_.front().number < record.number &&
             found_.front().position < record.position) {
    record.replaced = found_.front().position;
  }
  return {};
}

Result<void> RecordOrder::look_up_tombstone(PendingRecord& record, std::string_view name,
                                            const StreamHandle& metastream) {
  VERGER_TRY(const auto last, index_.last_number(metastream, [name]() -> Result<std::string> {
    return std::string(name);
  }));
  if (last == kNoStream) {
    return {};
  }
  VERGER_RETURN_IF_ERROR(index_.forward(metastream, last.value(), 1, found_));
  if (!found_.empty()) {
    record.replaced = found_.front().position;
  }
  return {};
}

}  // namespace verger::scavenge::detail
