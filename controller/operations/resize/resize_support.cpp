#include "controller/operations/resize/resize_support.h"

#include <algorithm>
#include <fmt/format.h>

#include "controller/operations/restore/restore_support.h"

namespace verger::controller::resize {

bool is_committed(const StepContext& context) {
  return context.values.contains(std::string(names::kCommittedValue));
}

std::string who_must_not_run(const StepContext& context) {
  for (const auto& name : steps::list_parameter(context.step, "absent")) {
    if (const auto* node = context.snapshot.find(name); node != nullptr && node->answered) {
      return fmt::format(
          "{} runs, and must not beside voters of the smaller size: something starts it by itself, "
          "such as a service manager or an operator; see to it that nothing does, and begin anew",
          name);
    }
  }
  return {};
}

std::string not_settled(const StepContext& context) {
  const auto nodes = steps::list_parameter(context.step, "nodes");
  const auto* leader = context.snapshot.leader();
  if (leader == nullptr) {
    return "no single node leads";
  }
  if (std::ranges::find(nodes, leader->name) == nodes.end()) {
    return fmt::format("{} leads, and is none of those that stay", leader->name);
  }
  for (const auto& name : nodes) {
    const auto* node = context.snapshot.find(name);
    if (node == nullptr || !node->answered || !node->alive) {
      return fmt::format("{} does not answer", name);
    }
    if (node->role != planner::Role::kLeader && node->role != planner::Role::kFollower) {
      return fmt::format("{} is in state {}", name, node->state);
    }
    if (node->sees_leader != leader->instance_id) {
      return fmt::format("{} does not take {} for the leader", name, leader->name);
    }
    if (node->epoch_number != leader->epoch_number || node->epoch_id != leader->epoch_id) {
      return fmt::format("{} is in epoch {}, the leader {} in {}", name, node->epoch_number,
                         leader->name, leader->epoch_number);
    }
    if (!cluster_restore::has_committed(*node, *leader)) {
      return fmt::format("{} ends at {}, and {} is committed", name, node->writer_checkpoint,
                         leader->last_commit_position);
    }
  }
  return {};
}

}  // namespace verger::controller::resize
