#pragma once

#include "engine/scavenge/context.h"
#include "engine/scavenge/detail/accumulated_batch.h"
#include "engine/scavenge/detail/record_order.h"

namespace verger::scavenge::detail {

/// Does for a complete batch what needs no look at the state, so that the one before it may be
/// stored meanwhile: hashes and sorts streams and records, which is several times as fast to store
/// as the order of the log, and looks the records up in the index. One thread.
class BatchPreparation {
 public:
  explicit BatchPreparation(RunContext& context);
  /// Index tables have been compared with their checksums if there are records. Errors: those of
  /// RecordOrder; kCancelled.
  Result<void> prepare(AccumulatedBatch& batch);

 private:
  RunContext& context_;
  RecordOrder order_;
};

}  // namespace verger::scavenge::detail
