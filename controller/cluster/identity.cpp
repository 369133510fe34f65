#include "controller/cluster/identity.h"

#include <algorithm>
#include <fmt/format.h>

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

EpochMark epoch_of(const planner::ClusterSnapshot& snapshot) {
  const auto* leader = snapshot.leader();
  if (leader == nullptr || leader->epoch_number < 0 || leader->epoch_id.empty()) {
    return {};
  }
  const auto in_it = std::ranges::count_if(snapshot.nodes, [leader](const auto& node) {
    return node.answered && !node.read_only_replica && node.epoch_number == leader->epoch_number &&
           node.epoch_id == leader->epoch_id;
  });
  if (static_cast<std::size_t>(in_it) < snapshot.quorum()) {
    return {};
  }
  return {leader->epoch_number, leader->epoch_id};
}

std::string contradicts_epoch(const planner::ClusterSnapshot& snapshot, const EpochMark& seen) {
  const auto* leader = snapshot.leader();
  if (seen.number < 0 || leader == nullptr || leader->epoch_number < 0) {
    return {};
  }
  const bool older = leader->epoch_number < seen.number;
  const bool another = leader->epoch_number == seen.number && leader->epoch_id != seen.id;
  if (!older && !another) {
    return {};
  }
  return fmt::format(
      "the leader {} is in epoch {} ({}), and a majority of this cluster was in epoch {} ({}) "
      "before: another cluster answers there, or an older backup was restored. If that is right, "
      "remove the cluster and add it again",
      leader->name, leader->epoch_number, leader->epoch_id, seen.number, seen.id);
}

}  // namespace verger::controller
