#pragma once

#include <cstdint>
#include <memory>

#include <boost/asio/awaitable.hpp>

#include "nodeagent/operations/online_scavenge/online_work.h"

/// New chunks are switched in by the server, one after the other.
namespace verger::agent::beside {

/// What is switched by now, and what it was worth.
struct Switched {
  std::int64_t chunks = 0;
  std::int64_t saved = 0;
  std::int64_t removed = 0;
  std::int64_t bytes = 0;
};

/// All that waits, one after the other, until the operation is stopped. Without a failure the lock
/// is held, and `left` of the work has all that is not switched.
net::awaitable<Ended> switch_chunks(Shared work, std::shared_ptr<Switched> sum);

}  // namespace verger::agent::beside
