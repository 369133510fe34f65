#include "controller/cluster/identity.h"

namespace verger::controller {

std::string identity_of(const planner::ClusterSnapshot& snapshot) {
  std::string identity;
  for (const auto& node : snapshot.nodes) {
    if (!node.agent || node.agent->database_id.empty() ||
        (!identity.empty() && node.agent->database_id != identity)) {
      return {};
    }
    identity = node.agent->database_id;
  }
  return identity;
}

}  // namespace verger::controller
