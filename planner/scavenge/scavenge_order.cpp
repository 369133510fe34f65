#include "planner/scavenge/scavenge_order.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace verger::planner::detail {
namespace {

/// Followers whose lag is in the same bucket are ordered by name, so that a busy cluster gives the
/// same plan twice.
constexpr std::int64_t kLagBucket = std::int64_t{1} << 20U;

std::int64_t lag_bucket(const NodeSnapshot* leader, const NodeSnapshot& node) {
  if (leader == nullptr || leader->writer_checkpoint < 0 || node.writer_checkpoint < 0) {
    return 0;
  }
  return std::max<std::int64_t>(leader->writer_checkpoint - node.writer_checkpoint, 0) / kLagBucket;
}

}  // namespace

ScavengeOrder::ScavengeOrder(const ClusterSnapshot& seen, const Policy& wanted)
    : snapshot(seen),
      policy(wanted),
      scavenge(scavenge_of(wanted)),
      latest(seen.latest_point()),
      voters(seen.voters()) {
  const auto* head = snapshot.leader();
  for (const auto& node : snapshot.nodes) {
    if (!node.read_only_replica) {
      priorities_.push_back(node.priority);
    }
    if (node.read_only_replica) {
      if (scavenge.read_only_replicas == ReplicaRule::kInclude) {
        replicas.push_back(&node);
      }
    } else if (&node == head) {
      leader = &node;
    } else {
      followers.push_back(&node);
    }
  }
  std::ranges::sort(priorities_);
  const auto order = [head](const NodeSnapshot* a, const NodeSnapshot* b) {
    return std::tuple(lag_bucket(head, *a), std::string_view(a->name)) <
           std::tuple(lag_bucket(head, *b), std::string_view(b->name));
  };
  std::ranges::sort(followers, order);
  std::ranges::sort(replicas, order);
  choose_ways();
  list_gates();
}

void ScavengeOrder::choose_ways() {
  // Of other operations that stop nodes the preflight is another.
  const auto estimates = scavenge.strategy == Strategy::kAuto && snapshot.preflight
                             ? read_scavenge_estimates(snapshot.preflight->facts)
                             : ScavengeEstimates();
  for (const auto* node : included()) {
    const bool stays_leader = node == leader && !moves_leader();
    const bool may_stop = !stays_leader && (node->read_only_replica || voters >= 3);
    const auto estimate = estimates.find(node->name);
    ways_.emplace(node, choose_way(*node, scavenge, may_stop,
                                   estimate == estimates.end() ? nullptr : &estimate->second));
  }
}

const ChosenWay& ScavengeOrder::way(const NodeSnapshot& node) const {
  static const ChosenWay kByServer;
  const auto found = ways_.find(&node);
  return found == ways_.end() ? kByServer : found->second;
}

bool ScavengeOrder::makes_point_first() const {
  return std::ranges::any_of(
      ways_, [](const auto& each) { return each.second.way != ScavengeWay::kServer; });
}

void ScavengeOrder::list_gates() {
  std::vector<Gate> cluster_gates{
      {"cluster-identity", 0}, {"agents-answer", 0},
      {"voters-alive", 0},     {"one-leader", 0},
      {"quorum-margin", 0},    {"lag-below", policy.gates.lag_limit_bytes},
      {"lag-falling", 0},      {"clocks", policy.gates.clock_skew_limit_ms}};
  if (std::ranges::any_of(snapshot.nodes, &NodeSnapshot::has_agent)) {
    cluster_gates.push_back({"no-other-work", 0});
  }
  if (std::ranges::any_of(snapshot.nodes, [](const NodeSnapshot& node) {
        return node.url.starts_with("https") || node.agent_url.starts_with("https");
      })) {
    cluster_gates.push_back({"certificates", policy.gates.certificate_margin_ms});
  }
  if (!policy.gates.queries.empty()) {
    cluster_gates.push_back({"queries", 0});
  }
  digest_gates_ = {{"cluster-identity", 0},
                   {"agents-answer", 0},
                   {"lag-below", policy.gates.lag_limit_bytes},
                   {"no-scavenge-on-node", 0},
                   {"disk-reserve", policy.gates.disk_reserve_bytes}};
  if (!policy.gates.queries.empty()) {
    digest_gates_.push_back({"queries", 0});
  }
  digest_gates_.push_back({"maintenance-window", 0});
  move_gates = cluster_gates;
  move_gates.push_back({"maintenance-window", 0});
  resign_gates = move_gates;
  resign_gates.push_back({"no-scavenge-running", 0});
  resign_gates.push_back({"leader-settled", policy.limits.election_settle_ms});
  serving_gates_ = node_gates(cluster_gates, /*stops=*/false);
  stopping_gates_ = node_gates(std::move(cluster_gates), /*stops=*/true);
}

ScavengeOrder::NodeGates ScavengeOrder::node_gates(std::vector<Gate> cluster_gates,
                                                   bool stops) const {
  NodeGates out;
  auto& gates = out.replica;
  gates = std::move(cluster_gates);
  std::ranges::find(gates, "quorum-margin", &Gate::name)->limit = stops ? 1 : 0;
  gates.push_back({"leader-settled", policy.limits.election_settle_ms});
  gates.push_back({"auto-scavenge-off", 0});
  gates.push_back(
      {scavenge.foreign == ForeignRule::kAdopt ? "no-scavenge-elsewhere" : "no-scavenge-running",
       0});
  gates.push_back({"index-idle", 0});
  gates.push_back({"disk", policy.gates.disk_reserve_bytes});
  out.voter = gates;
  gates.push_back({"maintenance-window", 0});
  if (moves_leader()) {
    out.voter.push_back({"not-leader", 0});
  }
  out.voter.push_back({"maintenance-window", 0});
  return out;
}

bool ScavengeOrder::includes_leader() const {
  return leader != nullptr && scavenge.strategy != Strategy::kFollowersOnly;
}
bool ScavengeOrder::moves_leader() const {
  return includes_leader() && scavenge.leader == LeaderRule::kResign && !followers.empty();
}

std::vector<const NodeSnapshot*> ScavengeOrder::included() const {
  auto out = followers;
  out.insert(out.end(), replicas.begin(), replicas.end());
  if (includes_leader()) {
    out.push_back(leader);
  }
  return out;
}

bool ScavengeOrder::done_with_latest(const NodeSnapshot& node) const {
  if (!node.agent || node.agent->unfinished) {
    return false;
  }
  return !latest ||
         (node.agent->last_finished && node.agent->last_finished->number >= latest->number);
}

void ScavengeOrder::choose_creator() {
  auto& candidates = followers.empty() ? replicas : followers;
  if (candidates.empty()) {
    creator = leader;
    return;
  }
  auto best =
      std::ranges::find_if(candidates, [this](const auto* n) { return done_with_latest(*n); });
  if (makes_point_first()) {
    // The point is made before any node's turn, by a node that can; then the order is as it was.
    if (best != candidates.end()) {
      creator = *best;
    } else {
      const auto all = included();
      const auto any =
          std::ranges::find_if(all, [this](const auto* n) { return done_with_latest(*n); });
      creator = any == all.end() ? candidates.front() : *any;
    }
    return;
  }
  if (best == candidates.end()) {
    best = std::ranges::find_if(candidates, [](const auto* n) { return n->agent.has_value(); });
  }
  if (best == candidates.end()) {
    best = candidates.begin();
  }
  std::rotate(candidates.begin(), best, best + 1);
  creator = candidates.front();
}

std::int32_t ScavengeOrder::losing_priority(const NodeSnapshot& node) const {
  const std::size_t next = !priorities_.empty() && priorities_.front() == node.priority ? 1 : 0;
  return next < priorities_.size() ? std::min(0, priorities_[next]) - 1 : -1;
}

std::int32_t ScavengeOrder::margin(const NodeSnapshot& node) const {
  const auto others = voters - (node.read_only_replica ? 0U : 1U);
  return static_cast<std::int32_t>(others) - static_cast<std::int32_t>(voters / 2 + 1);
}

}  // namespace verger::planner::detail
