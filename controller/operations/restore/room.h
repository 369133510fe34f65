#pragma once

#include <cstdint>

#include "nodeagent/api/agent_facts.h"

namespace verger::controller::cluster_restore {

/// Bytes free on the disks of database and index together; -1: not known.
std::int64_t room_on(const api::AgentFacts& facts);

}  // namespace verger::controller::cluster_restore
