#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "engine/base/quantities.h"
#include "planner/detail/gate_checks.h"
#include "planner/detail/lag.h"

namespace verger::planner::detail {
namespace {

constexpr int kLeastAgentVersion = 1;  // 0.1
constexpr std::int64_t kLagNoise = std::int64_t{1} << 20U;

bool is_settled(const NodeSnapshot& node) {
  return node.role == Role::kLeader || node.role == Role::kFollower ||
         node.role == Role::kReadOnlyReplica;
}

std::string voters_text(std::size_t voters) {
  return counted(static_cast<std::int64_t>(voters), "voter");
}

std::string in_seconds(std::int64_t milliseconds) {
  return fmt::format("{:g}", static_cast<double>(milliseconds) / 1'000);
}

struct LargestLag {
  const NodeSnapshot* node = nullptr;
  std::int64_t lag = 0;
  void add(const NodeSnapshot& of, std::int64_t lags) {
    if (node == nullptr || lags > lag) {
      node = &of;
      lag = lags;
    }
  }
};

/// It may answer, and be of another instance than its node.
std::string agent_silence(const NodeSnapshot& node) {
  return node.agent_problem.empty() ? fmt::format("the agent of {} does not answer", node.name)
         : node.agent_problem.starts_with("its agent")
             ? node.agent_problem
             : fmt::format("the agent of {} does not answer: {}", node.name, node.agent_problem);
}

void add_unless_settled(const Look& look, const NodeSnapshot& node, States& out) {
  if (!is_up(node)) {
    out.push_back(measured(
        closed(look.gate.name, "node-down", node.name,
               node.problem.empty() ? "it does not answer" : node.problem,
               node.remedy.empty() ? "start the node, or wait until it is back; where it runs, "
                                     "correct its URL with `verger cluster update`"
                                   : node.remedy),
        "down", "up"));
  } else if (!is_settled(node)) {
    out.push_back(measured(closed(look.gate.name, "node-unsettled", node.name,
                                  fmt::format("it is in state {}", node.state),
                                  node.read_only_replica ? "wait until it follows the leader"
                                                         : "wait until it is a leader or follower"),
                           node.state, "settled"));
  }
}

}  // namespace

void cluster_identity(const Look& look, States& out) {
  if (!look.snapshot.wrong_cluster.empty()) {
    out.push_back(closed(
        look.gate.name, "wrong-cluster", "", look.snapshot.wrong_cluster,
        "check the URLs with `verger cluster show`, or correct them with `verger cluster update`"));
  }
  for (const auto& node : look.snapshot.nodes) {
    if (node.wrong_identity) {
      out.push_back(
          closed(look.gate.name, "wrong-node", node.name,
                 node.problem.empty() ? "it is not the node that was registered" : node.problem,
                 "nothing is done to it; remove the cluster and add it with the right URLs"));
    }
  }
  for (const auto& stranger : look.snapshot.unregistered) {
    out.push_back(closed(look.gate.name, "unregistered-member", "",
                         fmt::format("{} is a live member that is not registered", stranger),
                         "name all its nodes with `verger cluster update`"));
  }
  if (look.wants_value(out)) {
    const auto all = fmt::format("{} nodes", look.snapshot.nodes.size());
    out.push_back(opened(look, all, all));
  }
}

void voters_alive(const Look& look, States& out) {
  for (const auto& node : look.snapshot.nodes) {
    if (!node.read_only_replica || &node == look.node) {
      add_unless_settled(look, node, out);
    }
  }
  for (const auto& witness : look.snapshot.nodes) {
    for (const auto& dead : witness.sees_dead) {
      const auto* node = look.snapshot.find(dead);
      if (node != nullptr && !node->read_only_replica && is_up(*node)) {
        out.push_back(closed(look.gate.name, "node-down", dead,
                             fmt::format("it answers, but {} calls it dead", witness.name),
                             "check the network between the nodes"));
      }
    }
  }
  if (look.wants_value(out)) {
    const auto all = voters_text(look.snapshot.voters());
    out.push_back(opened(look, all, all));
  }
}

void replicas_alive(const Look& look, States& out) {
  std::size_t replicas = 0;
  for (const auto& node : look.snapshot.nodes) {
    if (node.read_only_replica) {
      ++replicas;
      add_unless_settled(look, node, out);
    }
  }
  if (look.wants_value(out)) {
    const auto all = fmt::format("{} of {}", replicas, replicas);
    out.push_back(opened(look, all, all));
  }
}

void one_leader(const Look& look, States& out) {
  const auto leads = [](const NodeSnapshot& node) {
    return is_up(node) && node.role == Role::kLeader && !node.wrong_identity;
  };
  const auto count = std::ranges::count_if(look.snapshot.nodes, leads);
  const auto* leader = look.snapshot.leader();
  if (leader == nullptr && count < 2) {
    out.push_back(
        measured(closed(look.gate.name, "no-leader", "", "no node leads", "wait for the election"),
                 "0 leaders", "1 leader"));
    return;
  }
  if (count > 1) {
    out.push_back(measured(
        closed(look.gate.name, "several-leaders", "",
               fmt::format("{} nodes say that they lead", count), "wait until one of them resigns"),
        fmt::format("{} leaders", count), "1 leader"));
    return;
  }
  for (const auto& node : look.snapshot.nodes) {
    if (!node.read_only_replica && is_up(node) && node.sees_leader != leader->instance_id) {
      out.push_back(closed(look.gate.name, "leader-disputed", node.name,
                           fmt::format("it does not take {} for the leader", leader->name),
                           "wait until gossip has settled"));
    }
  }
  if (look.wants_value(out)) {
    out.push_back(opened(look, "1 leader", "1 leader", leader->name));
  }
}

void quorum_margin(const Look& look, States& out) {
  const auto others =
      static_cast<std::size_t>(std::ranges::count_if(look.snapshot.nodes, [&](const auto& node) {
        return !node.read_only_replica && &node != look.node && is_up(node) && is_settled(node);
      }));
  const bool votes = look.node != nullptr && !look.node->read_only_replica;
  // One or two voters have no margin at all; there the other one must at least be up, unless this
  // one will be down.
  const bool may_do_without = votes && look.gate.limit == 0;
  const auto needed = may_do_without ? std::min(look.snapshot.quorum(), look.snapshot.voters() - 1)
                                     : look.snapshot.quorum();
  if (others < needed) {
    out.push_back(measured(
        closed(look.gate.name, "quorum-margin", look.node == nullptr ? "" : look.node->name,
               fmt::format("without it {} {} up, {} {} needed", voters_text(others),
                           others == 1 ? "is" : "are", needed, needed == 1 ? "is" : "are"),
               look.snapshot.voters() == 1
                   ? "the cluster has no other voter: what needs the server stopped is done by hand"
                   : "bring the other voters up first"),
        voters_text(others), voters_text(needed)));
  } else if (look.values) {
    out.push_back(opened(look, voters_text(others), voters_text(needed)));
  }
}

namespace {

/// Why a live node that does not lead is not up to date; nullopt: it is, with this lag.
std::optional<GateState> why_behind(const Look& look, const NodeSnapshot& leader,
                                    const NodeSnapshot& node, std::int64_t lag) {
  if (lag < 0) {
    return closed(look.gate.name, "lag-unknown", node.name, "its position is not known",
                  "wait until gossip has its checkpoints");
  }
  if (lag > look.gate.limit) {
    return measured(closed(look.gate.name, "lag", node.name,
                           fmt::format("it lags {} behind {}, the limit is {}", human_bytes(lag),
                                       leader.name, human_bytes(look.gate.limit)),
                           "wait until it has caught up, or raise the policy's limit"),
                    human_bytes(lag), human_bytes(look.gate.limit));
  }
  if (node.epoch_number != leader.epoch_number) {
    return closed(
        look.gate.name, "epoch-differs", node.name,
        fmt::format("it is in epoch {}, the leader in {}", node.epoch_number, leader.epoch_number),
        "wait until it has joined the leader");
  }
  return std::nullopt;
}

}  // namespace

void lag_below(const Look& look, States& out) {
  const auto* leader = look.snapshot.leader();
  if (leader == nullptr) {
    return;  // one-leader says so
  }
  LargestLag largest;
  for (const auto& node : look.snapshot.nodes) {
    if (&node == leader || !is_up(node)) {
      continue;
    }
    const auto lag = lag_behind(leader, node);
    if (auto why = why_behind(look, *leader, node, lag)) {
      out.push_back(*std::move(why));
    } else {
      largest.add(node, lag);
    }
  }
  if (look.wants_value(out) && largest.node != nullptr) {
    out.push_back(
        opened(look, human_bytes(largest.lag), human_bytes(look.gate.limit), largest.node->name));
  }
}

void node_current(const Look& look, States& out) {
  if (look.node == nullptr) {
    return;
  }
  const auto& node = *look.node;
  add_unless_settled(look, node, out);
  if (!out.empty()) {
    return;
  }
  if (!node.agent_answered || !node.agent) {
    out.push_back(measured(closed(look.gate.name, "agent-silent", node.name, agent_silence(node),
                                  "start its agent, or wait until it answers"),
                           "silent", "answers"));
  } else if (!node.agent->files_problem.empty()) {
    out.push_back(
        closed(look.gate.name, "agent-blind", node.name,
               fmt::format("its agent cannot read the node's files: {}", node.agent->files_problem),
               "check the agent's user and its db and index directories"));
  }
  const auto* leader = look.snapshot.leader();
  if (leader == nullptr) {
    out.push_back(closed(look.gate.name, "no-leader", node.name,
                         "there is no single leader that it could be compared with",
                         "wait for the election"));
    return;
  }
  const auto lag = &node == leader ? 0 : lag_behind(leader, node);
  if (&node != leader && node.sees_leader != leader->instance_id) {
    out.push_back(closed(look.gate.name, "leader-disputed", node.name,
                         fmt::format("it does not take {} for the leader", leader->name),
                         "wait until gossip has settled"));
  } else if (&node != leader) {
    if (auto why = why_behind(look, *leader, node, lag)) {
      out.push_back(*std::move(why));
    }
  }
  if (look.wants_value(out)) {
    out.push_back(opened(look, human_bytes(lag), human_bytes(look.gate.limit), node.name));
  }
}

void lag_falling(const Look& look, States& out) {
  const auto* leader = look.snapshot.leader();
  LargestLag largest;
  for (const auto& node : look.snapshot.nodes) {
    const auto lag = lag_behind(leader, node);
    if (is_up(node) && &node != leader && lag >= 0) {
      largest.add(node, lag);
    }
    // Positions are queried one after the other: a busy leader is always a little ahead.
    if (!is_up(node) || lag <= kLagNoise || node.lag_before < 0 || lag < node.lag_before) {
      continue;
    }
    const auto kept =
        std::min(node.writer_checkpoint,
                 node.chaser_checkpoint < 0 ? node.writer_checkpoint : node.chaser_checkpoint);
    if (node.leader_before >= 0 && kept >= node.leader_before) {
      continue;  // it keeps up: it has all that the leader had then
    }
    out.push_back(measured(
        closed(look.gate.name, "lag-not-falling", node.name,
               fmt::format("it lags {} behind the leader, and lagged {} {} s ago", human_bytes(lag),
                           human_bytes(node.lag_before), node.lag_before_ms / 1000),
               "wait until it catches up; see what keeps it busy"),
        human_bytes(lag), "below " + human_bytes(node.lag_before)));
  }
  if (look.wants_value(out) && largest.node != nullptr) {
    const auto before = largest.lag <= kLagNoise ? kLagNoise : largest.node->lag_before;
    out.push_back(opened(look, human_bytes(largest.lag),
                         before < 0 ? std::string() : "below " + human_bytes(before),
                         largest.node->name));
  }
}

void agents_answer(const Look& look, States& out) {
  for (const auto& node : look.snapshot.nodes) {
    if (!node.has_agent()) {
      continue;
    }
    if (node.agent && !node.agent->files_problem.empty()) {
      out.push_back(measured(
          closed(
              look.gate.name, "agent-blind", node.name,
              fmt::format("its agent cannot read the node's files: {}", node.agent->files_problem),
              "check the agent's user and its db and index directories; just started, it needs "
              "a moment"),
          node.agent->files_problem, "reads them"));
      continue;
    }
    if (node.agent && !node.agent->node_problem.empty()) {
      out.push_back(measured(
          closed(
              look.gate.name, "agent-powerless", node.name,
              fmt::format("its agent cannot operate the node: {}", node.agent->node_problem),
              "correct the agent's credentials file (a user in $ops or $admins); the agent reads "
              "it again within seconds"),
          node.agent->node_problem, "operates it"));
      continue;
    }
    if (!node.agent_answered) {
      out.push_back(measured(closed(look.gate.name, "agent-gone", node.name, agent_silence(node),
                                    "start verger-agent on that machine, or correct its URL with "
                                    "`verger cluster update`"),
                             "silent", "answers"));
    } else if (!node.agent && node.answered) {
      // It answers the controller, so the agent looks for it in another place, or is not let in.
      out.push_back(measured(
          closed(
              look.gate.name, "agent-without-node", node.name, agent_silence(node),
              "correct Node and TrustedRootCertificatesPath in the agent's file, and restart it; "
              "`verger cluster show` shows when it reaches its node"),
          "sees no node", "sees its node"));
    } else if (node.agent) {
      const auto version = version_number(node.agent->version);
      if (version && *version < kLeastAgentVersion) {
        out.push_back(measured(
            closed(look.gate.name, "agent-too-old", node.name,
                   fmt::format("its agent says that it is version {}, which this controller cannot "
                               "rely on",
                               node.agent->version),
                   "install the controller's version of verger-agent there"),
            node.agent->version,
            fmt::format("{}.{}", kLeastAgentVersion / 100, kLeastAgentVersion % 100)));
      }
    }
  }
  if (look.wants_value(out)) {
    const auto agents = fmt::format(
        "{} agents", std::ranges::count_if(look.snapshot.nodes, &NodeSnapshot::has_agent));
    out.push_back(opened(look, agents, agents));
  }
}

void leader_settled(const Look& look, States& out) {
  const auto stable = std::max<std::int64_t>(look.snapshot.leader_stable_ms, 0);
  const auto limit = fmt::format("{} s", in_seconds(look.gate.limit));
  const auto value = fmt::format("{} s", in_seconds(stable));
  if (look.snapshot.leader_stable_ms < look.gate.limit) {
    out.push_back(measured(
        closed(look.gate.name, "election-recent", "",
               fmt::format("the leader has not been observed for {} without an election", limit),
               "wait"),
        value, limit));
  } else if (look.values) {
    out.push_back(opened(look, value, limit));
  }
}

void not_leader(const Look& look, States& out) {
  const auto* node = look.node;
  if (node != nullptr && is_up(*node) && node->role == Role::kLeader) {
    auto state = closed(look.gate.name, "is-leader", node->name, "it leads the cluster",
                        "the leader's turn is the last");
    state.verdict = GateVerdict::kDeferred;
    out.push_back(measured(std::move(state), "leader", "not the leader"));
  } else if (look.values && node != nullptr && is_up(*node)) {
    out.push_back(opened(look, node->state, "not the leader", node->name));
  }
}

}  // namespace verger::planner::detail
