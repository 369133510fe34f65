#pragma once

#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// The node's inspection, with its files read just now; valid until the next co_await. Errors:
/// kUnavailable (the node is stopped, or does not answer), those of NodeInspection::refresh().
net::awaitable<Result<const node::NodeInspection*>> fresh_look(LocalNode node);

}  // namespace verger::agent
