#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nodeagent/client/outcome.h"
#include "nodeagent/http/message.h"

/// The work that a server does beside storing events: projections and persistent subscriptions.
/// Both run on the leader and start again on the next one; the embedded node has the latter. The
/// routes are there with AtomPub off, any user may read them, and a follower hands them on to the
/// leader. While there is no leader the subscriptions answer 503, and the projections not at all.
namespace verger::client {

enum class WorkState : std::uint8_t {
  kRunning,
  kStarting,  ///< on its way to running, as after an election
  kStopped,   ///< stopped, faulted, completed, or a status that is not known
};

/// One projection or persistent subscription.
struct ServerWork {
  std::string name;    ///< of a subscription "stream::group"
  std::string status;  ///< as the server says it, with its reason: "Faulted: ..."
  WorkState state = WorkState::kStopped;
  bool continuous = true;  ///< false: it ends by itself, as a one-time projection
};

/// Of GET /projections/all-non-transient.
Outcome<std::vector<ServerWork>> parse_answer_projections(const http::Response& response);
/// Of GET /subscriptions.
Outcome<std::vector<ServerWork>> parse_answer_subscriptions(const http::Response& response);
/// Of the requests that start them again: 200 is always `unknown` (queued).
Outcome<Nothing> parse_answer_work_started(const http::Response& response);

}  // namespace verger::client
