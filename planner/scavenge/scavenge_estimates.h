#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "planner/preflight.h"

namespace verger::planner {

/// What a node's agent says a scavenge would remove that is begun now.
struct NodeEstimate {
  std::int64_t removed_bytes = -1;  ///< -1: not known
  std::int64_t removed_records = -1;
  bool at_least = false;  ///< more than that goes, which was not counted
  std::string problem{};  ///< why it is not known
  friend bool operator==(const NodeEstimate&, const NodeEstimate&) = default;
};

/// The facts of planner::Preflight for a scavenge with the strategy auto, by node: written by the
/// controller, read by plan_scavenge.
using ScavengeEstimates = std::map<std::string, NodeEstimate, std::less<>>;
Json to_json(const ScavengeEstimates& estimates);
/// Members that are missing, or of another type, are not known.
ScavengeEstimates read_scavenge_estimates(const Json& value);

}  // namespace verger::planner
