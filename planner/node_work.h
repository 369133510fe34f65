#pragma once

#include <optional>
#include <string>

#include "planner/plan.h"
#include "planner/snapshot.h"

namespace verger::planner {

/// What is at work on a node's files, or may be.
struct NodeWork {
  std::string what;   ///< "still scavenges (<id>)"
  bool seen = false;  ///< false: the node does not show whether it is
};
/// nullopt: it shows that nothing is, or does not answer at all.
std::optional<NodeWork> work_on(const NodeSnapshot& node);

/// Work on the node's files that does not end with its server; of work that is not known: true.
bool outlasts_server(const AgentWork& work);

/// True for a step that must not begin beside work of that sort on another node.
bool waits_for_work_elsewhere(const Step& step);

}  // namespace verger::planner
