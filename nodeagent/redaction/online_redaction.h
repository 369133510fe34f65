#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/base/result.h"
#include "engine/redaction/redaction_job.h"
#include "engine/redaction/redaction_plan.h"
#include "nodeagent/client/grpc/redaction_client.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/node/job_runner.h"

namespace verger::online {

/// All of it outlives the work.
struct OnlineEnvironment {
  FileSystem& files;
  Random& random;
  node::JobRunner& jobs;  ///< not on the client's executor: pings have to be answered meanwhile
  http::Timers& timers;
  Log& log;
  /// Called before each chunk file, and at the end: how many are done, and of how many. May be
  /// empty.
  std::function<void(std::size_t done, std::size_t total)> progress{};
};

struct OnlineRequest {
  Path directory;  ///< the database of the node that the client is connected to
  std::vector<redaction::EventName> events{};
  bool metadata = false;  ///< the bytes of their metadata, too
  /// The records that the events have by a list of redactions. Where the node names others, or not
  /// all of them, nothing is changed. Empty: whatever the node names.
  std::set<LogPosition> positions{};
  /// A replaced file that the node does not remove in time is no error: the caller looks for it.
  bool former_may_stay = false;
};

/// A switch whose answer, or the look after it, was lost: the node may have made it.
struct UnansweredSwitch {
  redaction::RedactedChunk chunk{};  ///< without `to`
  std::set<LogPosition> positions{};
};

struct OnlineReport {
  std::vector<std::string> removed;  ///< copies that an interrupted redaction had left
  std::vector<redaction::RedactedChunk> chunks;
  /// Given again with the next try, those that the node has made come to `chunks`.
  std::vector<UnansweredSwitch> unanswered;
  std::size_t already = 0;  ///< records that were redacted before this try
};

/// Redacts events on one running node: takes its chunk lock, finds the events, checks all of them
/// before the first change, and then for one chunk file after the other makes a redacted copy, has
/// the node switch it in, and reads the events there. What it does not reach (other nodes, backups)
/// is as with verger-db redact. `report` has what was done, after an error, too; run again, the
/// rest is done. Parallel work of the node goes on; a scavenge waits.
///
/// Errors: kNotFound: events that are not there (nothing has changed); kConflict: other records
/// than `positions` (nothing has changed); kRefused: what is not redacted, an event in the active
/// chunk (nothing has changed), or the node's own refusal of a switch; kUnavailable: the lock is
/// held by another, or the node does not answer; kUnknownOutcome: the connection ended during a
/// switch; kCancelled: `stop` was requested, between two chunk files; those of RedactedCopyJob.
net::awaitable<Result<void>> redact_online(std::shared_ptr<client::RedactionClient> node,
                                           OnlineRequest request, OnlineEnvironment environment,
                                           std::shared_ptr<OnlineReport> report,
                                           std::shared_ptr<const node::StopFlag> stop);

/// The same while the caller holds the node's chunk lock. After an error other than kNotFound,
/// kConflict and kCancelled the lock may be lost.
net::awaitable<Result<void>> redact_while_locked(std::shared_ptr<client::RedactionClient> node,
                                                 std::shared_ptr<client::HeldChunkLock> lock,
                                                 OnlineRequest request,
                                                 OnlineEnvironment environment,
                                                 std::shared_ptr<OnlineReport> report,
                                                 std::shared_ptr<const node::StopFlag> stop);

}  // namespace verger::online
