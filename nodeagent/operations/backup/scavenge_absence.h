#pragma once

#include <string>

#include <boost/asio/awaitable.hpp>

#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// How far the node's scavenges came: the same before and after a copy where none ran meanwhile.
struct ScavengesSeen {
  std::int64_t finished = -1;    ///< point of the last one that ended
  std::int64_t unfinished = -1;  ///< point of one that has not
  friend bool operator==(const ScavengesSeen&, const ScavengesSeen&) = default;
};

/// Looks at the node and its files. Errors: kConflict (a scavenge runs: it says which, and `why` it
/// is in the way), kUnavailable (it cannot be seen).
net::awaitable<Result<ScavengesSeen>> see_that_no_scavenge_runs(
    LocalNode node,
    std::string why =
        "a copy of its files could not be used. Wait for its end, or stop it for the "
        "backup and resume it afterwards");

}  // namespace verger::agent
