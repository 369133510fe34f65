#pragma once

#include <nlohmann/json_fwd.hpp>

#include "nodeagent/node/gossip.h"

namespace verger::node {

/// A member as GET /gossip has it, its names in camelCase and in the server's order.
nlohmann::ordered_json gossip_entry(const Member& member);

}  // namespace verger::node
