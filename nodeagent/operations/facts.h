#pragma once

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "nodeagent/api/agent.h"
#include "nodeagent/node/inspection.h"

namespace verger::agent {

/// What is true of the node beside the agent, now. `node` is nullptr while it is stopped: then only
/// what the disk shows is filled in. Reads; changes nothing. `chunks_below`: what bytes_below and
/// compared_chunk are to be about; -1: nothing.
api::NodeFacts collect_facts(const node::NodeInspection* node, FileSystem& files,
                             const Path& agent_directory, Clock& clock,
                             std::int64_t chunks_below = -1);

/// Of a stopped server: the space on the disks of its directories, or of where they are to be made.
void add_disks(FileSystem& files, const Path& database, const Path& index, api::NodeFacts& facts);

}  // namespace verger::agent
