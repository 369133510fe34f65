#pragma once

#include <boost/asio/awaitable.hpp>

#include "nodeagent/operations/online_scavenge/online_work.h"

namespace verger::agent::beside {

/// Has the server continue from the state, until that is Done. Starts it again where it was
/// restarted meanwhile.
net::awaitable<Ended> server_phase(Shared work);

}  // namespace verger::agent::beside
