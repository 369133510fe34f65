#pragma once

#include "engine/log/transaction_log.h"
#include "nodeagent/node/replication_messages.h"

namespace verger::node::replication {

/// Where a follower continues, as its leader decides from both logs' epochs.
struct Placement {
  enum class Kind : std::uint8_t {
    kStart,     ///< stream from `position`; below its writer only where a chunk is sent again whole
    kTruncate,  ///< its log differs from `position` on: cut there first, then try again
    kRefuse,
  };
  Kind kind = Kind::kRefuse;
  LogPosition position;
  std::string reason;
};

/// What a log can say about the records before `place`.
RecordEnd record_end_before(const log::TransactionLog& log, LogPosition place);
/// The claims a follower makes: its newest epochs.
std::vector<EpochClaim> epoch_claims(const log::TransactionLog& log, std::size_t limit = 1000);

/// Pure in the two logs. Within one epoch the two logs are prefixes of what its leader wrote, so
/// they part where the shorter of the two ends, in the newest epoch both have.
Placement place_follower(const log::TransactionLog& leader, const Subscribe& follower);

}  // namespace verger::node::replication
