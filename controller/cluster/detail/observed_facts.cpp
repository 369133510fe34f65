#include "controller/cluster/detail/observed_facts.h"

namespace verger::controller::detail {
namespace {

planner::Point to_point(const api::ScavengePoint& point) {
  return {point.number, point.position, point.threshold, point.effective_now};
}

}  // namespace

planner::Role role_of(api::NodeState state) {
  switch (state) {
    case api::NodeState::kLeader:
      return planner::Role::kLeader;
    case api::NodeState::kFollower:
      return planner::Role::kFollower;
    case api::NodeState::kReadOnlyReplica:
      return planner::Role::kReadOnlyReplica;
    case api::NodeState::kInitializing:
    case api::NodeState::kDiscoverLeader:
    case api::NodeState::kUnknown:
    case api::NodeState::kPreReplica:
    case api::NodeState::kCatchingUp:
    case api::NodeState::kClone:
    case api::NodeState::kPreLeader:
    case api::NodeState::kManager:
    case api::NodeState::kShuttingDown:
    case api::NodeState::kShutdown:
    case api::NodeState::kReadOnlyLeaderless:
    case api::NodeState::kPreReadOnlyReplica:
    case api::NodeState::kResigningLeader:
      return planner::Role::kOther;
  }
  return planner::Role::kOther;
}

std::vector<planner::AgentWork> work_of(const api::AgentFacts& facts) {
  std::vector<planner::AgentWork> out;
  for (const auto& operation : facts.operations) {
    if (!api::has_ended(operation.state)) {
      out.push_back({operation.id, operation.kind});
    }
  }
  return out;
}

planner::AgentFacts to_facts(const api::AgentFacts& facts) {
  planner::AgentFacts out;
  out.version = facts.agent_version;
  out.database_id = facts.database_id;
  out.files_problem = facts.files_problem;
  out.node_problem = facts.node_problem;
  out.warning = facts.warning;
  out.log_as_of = facts.log_as_of;
  for (const auto& point : facts.points) {
    out.points.push_back(to_point(point));
  }
  if (facts.last_finished_point) {
    out.last_finished = to_point(*facts.last_finished_point);
  }
  if (facts.unfinished) {
    out.unfinished =
        planner::Unfinished{to_point(facts.unfinished->point), facts.unfinished->stage};
  }
  out.disk_total = facts.disk_total_bytes;
  out.disk_free = facts.disk_free_bytes;
  out.database_bytes = facts.database_bytes;
  out.event_count = facts.event_count;
  out.chunk_files = facts.chunk_file_count;
  out.largest_chunk = facts.largest_chunk_bytes;
  out.chunk_size = facts.chunk_size;
  out.newest_chunk = facts.newest_chunk;
  out.complete_chunk_bytes = facts.complete_chunk_bytes;
  out.index_disk_free = facts.index_disk_total_bytes > 0 ? facts.index_disk_free_bytes : -1;
  out.largest_table = facts.largest_table_bytes;
  out.largest_merge = facts.largest_merge_bytes;
  out.writer_checkpoint = facts.writer_checkpoint;
  out.service_control = facts.service_control;
  out.offline_problem = facts.offline_problem;
  out.online_problem = facts.online_problem;
  out.lost_streams = facts.lost_streams;
  out.highest_controller_epoch = facts.highest_controller_epoch;
  return out;
}

}  // namespace verger::controller::detail
