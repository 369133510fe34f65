#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/cluster/registry.h"
#include "nodeagent/api/agent_facts.h"
#include "nodeagent/api/node.h"
#include "planner/snapshot.h"

namespace verger::controller::detail {

/// A node's answers, before they are compared with the others'.
struct Raw {
  planner::NodeSnapshot node;
  std::optional<api::Gossip> gossip;
  std::vector<std::string> names;  ///< "host:port" under which others may list it; sorted
  std::string database_id;
  /// What its agent looks at.
  api::DirectoryFacts database_directory{};
  api::DirectoryFacts index_directory{};
};

/// What the members say of each other: who leads, who is dead, who votes, who is registered under
/// two addresses or not at all, and whose database or cluster is another. Goes into the nodes and
/// into `snapshot`.
void compare(std::vector<Raw>& raws, const ClusterConfig& config,
             planner::ClusterSnapshot& snapshot);

}  // namespace verger::controller::detail
