#pragma once

#include <optional>

#include <boost/asio/awaitable.hpp>

#include "engine/online/installation.h"
#include "nodeagent/operations/online_scavenge/online_work.h"

/// The server's chunk lock: an open call, which ends with the connection.
namespace verger::agent::beside {

/// Takes it, again while another has it.
net::awaitable<Ended> take_lock(Shared work);
/// It was lost in the middle. What was prepared has to hold still once it is taken again.
net::awaitable<Ended> take_lock_again(Shared work);
net::awaitable<bool> lock_is_held(Shared work);
/// In order, where the server is there.
net::awaitable<void> release(Shared work);
/// What an earlier agent, or this one before it lost the lock, has prepared.
net::awaitable<Result<std::optional<online_scavenge::Resumable>>> look_for_left_over(Shared work);

}  // namespace verger::agent::beside
