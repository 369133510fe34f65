#include <algorithm>
#include <fmt/format.h>

#include "tests/support/controller/fake_cluster.h"

/// What the nodes and agents of the fake cluster say of themselves: gossip and facts.
namespace verger::test {

api::Gossip FakeCluster::gossip_of(const FakeNode& asked) const {
  api::Gossip out;
  out.server_ip = fmt::format("10.0.0.{}", asked.index);
  out.server_port = 2113;
  for (const auto& each : nodes) {
    if (!each.member && &each != &asked) {
      continue;
    }
    api::GossipMember member;
    member.instance_id = each.instance;
    member.time_stamp = format_ticks(now_at(each));
    member.state = each.state;
    member.is_alive = each.up || each.ghost;
    member.http_ip = fmt::format("10.0.0.{}", each.index);
    member.http_port = 2113;
    member.writer_checkpoint = each.writer;
    member.chaser_checkpoint = each.writer;
    member.last_commit_position = each.writer;
    member.epoch_number = epoch;
    member.epoch_id = fmt::format("epoch-{}", epoch);
    member.node_priority = each.priority;
    member.is_read_only_replica = each.read_only_replica;
    member.es_version = each.version;
    out.members.push_back(std::move(member));
  }
  return out;
}

Ticks FakeCluster::now_at(const FakeNode& node) const {
  return Ticks(time_.now().value() + node.clock_ahead.count() * kTicksPerMillisecond);
}

api::AgentFacts FakeCluster::facts_of(const FakeNode& node, std::int64_t chunks_below) const {
  const auto point_at = [this](std::int64_t number) {
    return api::ScavengePoint{number, points.at(static_cast<std::size_t>(number)),
                              "2024-06-02T00:00:00Z", 0};
  };
  api::AgentFacts out;
  out.agent_version = node.agent_version;
  out.taken_at = format_ticks(now_at(node));
  out.service_control = node.service_control;
  out.online_problem = node.online_problem;
  out.start_command = node.service_control ? "systemctl start eventstore@" + node.name : "";
  for (const auto& [id, operation] : node.operations) {
    out.operations.push_back(operation.status);
  }
  out.node_running = node.up;
  if (node.files.kept) {
    out.kept_restores = {node.files.kept->generation};
  }
  if (!node.up) {
    // As of a server in another process, of which its agent sees no more than that.
    out.node_problem = fmt::format("{}: Connection refused", node.name);
    const auto works = std::ranges::find_if(out.operations, [](const auto& operation) {
      return operation.state == api::OperationState::kActing &&
             operation.kind.starts_with("offline_");
    });
    if (!node.files.ordered_stop.empty()) {
      out.kept_stopped_by = "operation " + node.files.ordered_stop;
    } else if (works != out.operations.end()) {
      out.kept_stopped_by = "operation " + works->id;
    }
  }
  out.node_instance_id = node.up ? node.instance : "";
  out.node_version = node.agent_says_version.empty() ? node.version : node.agent_says_version;
  out.writer_checkpoint = std::int64_t{1} << 40U;
  out.lost_streams = node.lost_streams;
  out.database_id = node.database;
  out.database_directory = node.database_directory;
  out.index_directory = node.index_directory;
  out.disk_total_bytes = std::int64_t{1} << 40U;
  out.disk_free_bytes = node.disk_free;
  out.database_bytes = 1'000'000;
  out.largest_chunk_bytes = 262'144;
  out.chunk_size = 262'144;
  out.newest_chunk = node.newest_chunk;
  out.complete_chunk_bytes = node.complete_bytes;
  if (chunks_below >= 0 && node.complete_bytes >= 0) {
    // What was written since the test began is in whole chunks that no scavenge has seen.
    out.bytes_below = node.complete_bytes - (node.newest_chunk - chunks_below) * out.chunk_size;
  }
  if (chunks_below >= 0 && node.compared) {
    out.bytes_below = -1;
    out.compared_chunk = node.compared->chunk;
    out.compared_bytes = node.compared->bytes;
    out.completed_bytes = node.compared->completed;
  }
  out.index_disk_total_bytes = node.index_disk_free > 0 ? std::int64_t{1} << 40U : 0;
  out.index_disk_free_bytes = node.index_disk_free;
  out.largest_table_bytes = node.largest_table;
  for (std::size_t i = 0; i < std::min(points.size(), node.visible_points.value_or(points.size()));
       ++i) {
    out.points.push_back(point_at(static_cast<std::int64_t>(i)));
  }
  if (const auto finished = node.shown_finished()) {
    out.last_finished_point = point_at(*finished);
  }
  if (node.unfinished) {
    out.unfinished = api::UnfinishedScavenge{point_at(*node.unfinished), "Accumulating"};
  }
  if (node.running) {
    out.running = api::RunningScavenge{node.running->id, "Accumulation Phase", 0, 4,
                                       tells_progress ? time_.monotonic().count() : 0};
  }
  out.highest_controller_epoch = node.highest_epoch;
  out.files_problem = node.files_problem;
  out.stays_down = node.stays_down;
  return out;
}

}  // namespace verger::test
