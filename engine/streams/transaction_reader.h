#pragma once

#include <functional>

#include "engine/log/transaction_log.h"

namespace verger::streams::detail {

/// True for a record that is an event: data or a tombstone, not a transaction's marker.
inline bool carries_event(const log::Prepare& prepare) {
  return prepare.has(log::prepare_flags::kData | log::prepare_flags::kStreamDelete);
}

/// The number an explicit transaction's commit gives to one of its prepares.
inline EventNumber number_by_commit(const log::Commit& commit, const log::Prepare& prepare) {
  return prepare.has(log::prepare_flags::kStreamDelete)
             ? kDeletedStream
             : EventNumber(commit.first_event_number.value() + prepare.transaction_offset);
}

/// Visits the events that `commit` committed, in log order. Parts that were scavenged are missing.
/// `visit` returns false to stop early.
Result<void> visit_transaction(const log::TransactionLog& log, const log::Commit& commit,
                               const std::function<bool(const log::Prepare&)>& visit);

}  // namespace verger::streams::detail
