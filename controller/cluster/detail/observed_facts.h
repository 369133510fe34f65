#pragma once

#include <vector>

#include "nodeagent/api/agent_facts.h"
#include "nodeagent/api/node.h"
#include "planner/snapshot.h"

/// What nodes and agents tell, in the planner's terms.
namespace verger::controller::detail {

planner::Role role_of(api::NodeState state);
/// Operations of the agent that have not ended.
std::vector<planner::AgentWork> work_of(const api::AgentFacts& facts);
planner::AgentFacts to_facts(const api::AgentFacts& facts);

}  // namespace verger::controller::detail
