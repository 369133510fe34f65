#pragma once

#include <fmt/format.h>
#include <string>
#include <vector>

#include "planner/make_plan.h"

namespace verger::planner::testing {

inline Point point(std::int64_t number) {
  return Point{number, 1'000 * (number + 1), 0, "2024-06-01T10:00:00Z"};
}

/// A healthy node "n<index>" with an agent, without any scavenge point.
inline NodeSnapshot node(int index, Role role = Role::kFollower) {
  NodeSnapshot out;
  out.name = fmt::format("n{}", index);
  out.url = fmt::format("http://10.0.0.{}:2113", index);
  out.agent_url = fmt::format("http://10.0.0.{}:2114", index);
  out.answered = true;
  out.alive = true;
  out.instance_id = fmt::format("instance-{}", index);
  out.version = "24.6.0";
  out.role = role;
  out.state = role == Role::kLeader            ? "Leader"
              : role == Role::kReadOnlyReplica ? "ReadOnlyReplica"
                                               : "Follower";
  out.read_only_replica = role == Role::kReadOnlyReplica;
  out.epoch_number = 3;
  out.writer_checkpoint = 1'000'000;
  out.sees_leader = "instance-1";
  out.scavenge_running = false;
  out.index_merging = false;
  out.auto_scavenge = AutoScavenge::kAbsent;
  out.agent_answered = true;
  out.agent = AgentFacts{};
  out.agent->disk_total = std::int64_t{100} << 30U;
  out.agent->disk_free = std::int64_t{50} << 30U;
  out.agent->database_bytes = std::int64_t{4} << 30U;
  out.agent->largest_chunk = std::int64_t{256} << 20U;
  out.agent->chunk_size = std::int64_t{256} << 20U;
  return out;
}

/// n1 leads.
inline ClusterSnapshot cluster(int voters = 3) {
  ClusterSnapshot out;
  out.cluster = "prod";
  out.taken_at = Ticks(kUnixEpoch.value() + 17'000'000'000'000'000);
  for (int i = 1; i <= voters; ++i) {
    out.nodes.push_back(node(i, i == 1 ? Role::kLeader : Role::kFollower));
  }
  out.leader_stable_ms = 60'000;
  return out;
}

inline void without_agents(ClusterSnapshot& snapshot) {
  for (auto& node : snapshot.nodes) {
    node.agent_url.clear();
    node.agent_answered = false;
    node.agent.reset();
  }
}

/// All log the points 0..newest; `reached` gives each node's finished point, -1 = none.
inline void with_points(ClusterSnapshot& snapshot, std::int64_t newest,
                        const std::vector<std::int64_t>& reached) {
  for (std::size_t i = 0; i < snapshot.nodes.size(); ++i) {
    auto& facts = *snapshot.nodes[i].agent;
    for (std::int64_t p = 0; p <= newest; ++p) {
      facts.points.push_back(point(p));
    }
    if (reached[i] >= 0) {
      facts.last_finished = point(reached[i]);
    }
  }
}

/// "scavenge-n2 | move-n1: lower-n1, resign-n1" and so on: stage ids with their steps in order.
inline std::string outline(const Plan& plan, bool contingencies = false) {
  std::string out;
  for (const auto& stage : plan.stages) {
    if (!stage.if_deferred.empty() && !contingencies) {
      continue;
    }
    out += out.empty() ? "" : " | ";
    bool first = true;
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        out += first ? "" : ", ";
        out += step.id;
        first = false;
      }
    }
  }
  return out;
}

inline std::vector<std::string> codes(const std::vector<Refusal>& refusals) {
  std::vector<std::string> out;
  for (const auto& refusal : refusals) {
    out.push_back(refusal.node.empty() ? refusal.code
                                       : fmt::format("{}:{}", refusal.node, refusal.code));
  }
  return out;
}

}  // namespace verger::planner::testing
