#pragma once

#include <string_view>
#include <vector>

#include "engine/scavenge/context.h"
#include "engine/scavenge/detail/pending_records.h"
#include "engine/scavenge/index_view.h"

namespace verger::scavenge::detail {

/// Looks into the index for what else a metastream has: whether a metadata record is out of order,
/// and which record it, or a tombstone, replaces. One thread; records in ascending order of their
/// metastreams' hashes are looked up fastest. Of the run it uses the index and the log. Errors:
/// kCorruption, kIo.
class RecordOrder {
 public:
  explicit RecordOrder(const RunContext& context);
  /// Sets `in_order` and `replaced` of the record, which is one of that metastream.
  Result<void> look_up(PendingRecord& record, std::string_view name,
                       const StreamHandle& metastream);

 private:
  Result<void> look_up_tombstone(PendingRecord& record, std::string_view name,
                                 const StreamHandle& metastream);

  IndexView index_;
  std::vector<index::IndexEntry> found_;
};

}  // namespace verger::scavenge::detail
