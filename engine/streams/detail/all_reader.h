#pragma once

#include "engine/log/transaction_log.h"
#include "engine/streams/event_store.h"

namespace verger::streams::detail {

/// Reads events in the order of $all: by the position of what committed them, then by their own.
/// Nothing at or after `end` is seen.
Result<AllSlice> read_all_forward(const log::TransactionLog& log, LogPosition end, AllPosition from,
                                  std::size_t count);
/// Events before `from`, the last one first.
Result<AllSlice> read_all_backward(const log::TransactionLog& log, LogPosition end,
                                   AllPosition from, std::size_t count);

}  // namespace verger::streams::detail
