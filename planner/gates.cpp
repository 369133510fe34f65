#include "planner/gates.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <functional>

#include "engine/base/clock.h"

namespace verger::planner {
namespace {

using States = std::vector<GateState>;

GateState closed(std::string_view gate, std::string code, std::string node, std::string reason,
                 std::string hint) {
  return GateState{.verdict = GateVerdict::kClosed,
                   .gate = std::string(gate),
                   .code = std::move(code),
                   .node = std::move(node),
                   .reason = std::move(reason),
                   .hint = std::move(hint),
                   .value = {},
                   .limit = {}};
}

GateState measured(GateState state, std::string value, std::string limit) {
  state.value = std::move(value);
  state.limit = std::move(limit);
  return state;
}

/// Up enough to count for the quorum.
bool is_up(const NodeSnapshot& node) { return node.answered && node.alive; }
bool is_settled(const NodeSnapshot& node) {
  return node.role == Role::kLeader || node.role == Role::kFollower ||
         node.role == Role::kReadOnlyReplica;
}

/// major * 100 + minor of "24.10.3"; nullopt for anything else.
std::optional<int> version_number(std::string_view text) {
  int major = 0;
  int minor = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') {
    return std::nullopt;
  }
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) {
    return std::nullopt;
  }
  return major * 100 + minor;
}

void right_cluster(const Gate& gate, const ClusterSnapshot& snapshot, const NodeSnapshot*,
                   States& out) {
  if (!snapshot.wrong_cluster.empty()) {
    out.push_back(
        closed(gate.name, "wrong-cluster", "", snapshot.wrong_cluster,
               "check the URLs with `verger cluster show`, or register the cluster again"));
  }
  for (const auto& node : snapshot.nodes) {
    if (node.wrong_identity) {
      out.push_back(
          closed(gate.name, "wrong-node", node.name,
                 node.problem.empty() ? "it is not the node that was registered" : node.problem,
                 "nothing is done to it; remove the cluster and add it with the right URLs"));
    }
  }
  for (const auto& stranger : snapshot.strangers) {
    out.push_back(closed(gate.name, "unregistered-member", "",
                         fmt::format("{} is a live member that is not registered", stranger),
                         "register the cluster again with all its nodes"));
  }
}

void voters_alive(const Gate& gate, const ClusterSnapshot& snapshot, const NodeSnapshot* step_node,
                  States& out) {
  for (const auto& node : snapshot.nodes) {
    if (node.read_only_replica && &node != step_node) {
      continue;
    }
    if (!is_up(node)) {
      out.push_back(closed(gate.name, "node-down", node.name,
                           node.problem.empty() ? "it does not answer" : node.problem,
                           "start the node, or wait until it is back"));
    } else if (!is_settled(node)) {
      out.push_back(closed(gate.name, "node-unsettled", node.name,
                           fmt::format("it is in state {}", node.state),
                           "wait until it is a leader or follower"));
    }
  }
  for (const auto& witness : snapshot.nodes) {
    for (const auto& dead : witness.sees_dead) {
      const auto* node = snapshot.find(dead);
      if (node != nullptr && !node->read_only_replica && is_up(*node)) {
        out.push_back(closed(gate.name, "node-down", dead,
                             fmt::format("it answers, but {} calls it dead", witness.name),
                             "check the network between the nodes"));
      }
    }
  }
}

void one_leader(const Gate& gate, const ClusterSnapshot& snapshot, const NodeSnapshot*,
                States& out) {
  const auto leads = [](const NodeSnapshot& node) {
    return is_up(node) && node.role == Role::kLeader;
  };
  const auto count = std::ranges::count_if(snapshot.nodes, leads);
  if (count == 0) {
    out.push_back(closed(gate.name, "no-leader", "", "no node leads", "wait for the election"));
    return;
  }
  if (count > 1) {
    out.push_back(closed(gate.name, "several-leaders", "",
                         fmt::format("{} nodes say that they lead", count),
                         "wait until one of them gives up"));
    return;
  }
  const auto* leader = snapshot.leader();
  for (const auto& node : snapshot.nodes) {
    if (!node.read_only_replica && is_up(node) && node.sees_leader != leader->instance_id) {
      out.push_back(closed(gate.name, "leader-disputed", node.name,
                           fmt::format("it does not take {} for the leader", leader->name),
                           "wait until gossip has settled"));
    }
  }
}

void quorum_margin(const Gate& gate, const ClusterSnapshot& snapshot, const NodeSnapshot* step_node,
                   States& out) {
  const auto others =
      static_cast<std::size_t>(std::ranges::count_if(snapshot.nodes, [&](const auto& node) {
        return !node.read_only_replica && &node != step_node && is_up(node) && is_settled(node);
      }));
  const bool votes = step_node != nullptr && !step_node->read_only_replica;
  // One or two voters have no margin at all; there the other one must at least be up.
  const auto needed =
      votes ? std::min(snapshot.quorum(), snapshot.voters() - 1) : snapshot.quorum();
  if (others < needed) {
    out.push_back(
        measured(closed(gate.name, "quorum-margin", step_node == nullptr ? "" : step_node->name,
                        fmt::format("without it {} voters are up, {} are needed", others, needed),
                        "bring the other voters up first"),
                 fmt::format("{} voters", others), fmt::format("{} voters", needed)));
  }
}

void lag_below(const Gate& gate, const ClusterSnapshot& snapshot, const NodeSnapshot*,
               States& out) {
  const auto* leader = snapshot.leader();
  if (leader == nullptr) {
    return;  // one-leader says so
  }
  for (const auto& node : snapshot.nodes) {
    if (&node == leader || !is_up(node)) {
      continue;
    }
    const bool known = leader->writer_checkpoint >= 0 && node.writer_checkpoint >= 0;
    const auto lag =
        known ? std::max<std::int64_t>(0, leader->writer_checkpoint - node.writer_checkpoint) : -1;
    if (lag < 0) {
      out.push_back(closed(gate.name, "lag-unknown", node.name, "its position is not known",
                           "wait until gossip has its checkpoints"));
    } else if (lag > gate.limit) {
      out.push_back(measured(closed(gate.name, "lag", node.name,
                                    fmt::format("it lags {} bytes behind {}, the limit is {}", lag,
                                                leader->name, gate.limit),
                                    "wait until it has caught up, or raise the policy's limit"),
                             fmt::format("{} bytes", lag), fmt::format("{} bytes", gate.limit)));
    } else if (node.epoch_number != leader->epoch_number) {
      out.push_back(closed(gate.name, "epoch-differs", node.name,
                           fmt::format("it is in epoch {}, the leader in {}", node.epoch_number,
                                       leader->epoch_number),
                           "wait until it has joined the leader"));
    }
  }
}

void scavenge_free(const Gate& gate, const NodeSnapshot& node, States& out) {
  if (!is_up(node)) {
    return;
  }
  if (!node.scavenge_running) {
    out.push_back(closed(gate.name, "scavenge-unknown", node.name,
                         "whether a scavenge runs there cannot be seen",
                         "check the credentials and that its admin routes are on"));
  } else if (*node.scavenge_running) {
    out.push_back(closed(gate.name, "scavenge-running", node.name,
                         fmt::format("scavenge {} runs there", node.running.scavenge_id),
                         "wait until it ends, or stop it"));
  }
}

void nobody_scavenges(const Gate& gate, const ClusterSnapshot& snapshot, const NodeSnapshot*,
                      States& out) {
  for (const auto& node : snapshot.nodes) {
    scavenge_free(gate, node, out);
  }
}

void others_idle(const Gate& gate, const ClusterSnapshot& snapshot, const NodeSnapshot* step_node,
                 States& out) {
  for (const auto& node : snapshot.nodes) {
    if (&node != step_node) {
      scavenge_free(gate, node, out);
    }
  }
}

void idle(const Gate& gate, const ClusterSnapshot&, const NodeSnapshot* step_node, States& out) {
  if (step_node != nullptr) {
    scavenge_free(gate, *step_node, out);
  }
}

void auto_scavenge_off(const Gate& gate, const ClusterSnapshot& snapshot, const NodeSnapshot*,
                       States& out) {
  for (const auto& node : snapshot.nodes) {
    bool off = false;
    switch (node.auto_scavenge) {
      case AutoScavenge::kAbsent:
      case AutoScavenge::kNotConfigured:
      case AutoScavenge::kPaused:
        off = true;
        break;
      case AutoScavenge::kUnknown:
        // It came with 24.10; older servers cannot have it.
        off = !is_up(node) || version_number(node.version).value_or(0) < 2410;
        break;
      case AutoScavenge::kWaiting:
      case AutoScavenge::kInProgress:
      case AutoScavenge::kPausing:
        off = false;
        break;
    }
    if (!off) {
      out.push_back(
          closed(gate.name, "auto-scavenge-active", node.name,
                 fmt::format("the server's own auto-scavenge is {}", to_string(node.auto_scavenge)),
                 "pause it (POST /auto-scavenge/pause) for the time of the run"));
    }
  }
}

void disk(const Gate& gate, const ClusterSnapshot&, const NodeSnapshot* step_node, States& out) {
  const auto* node = step_node;
  if (node == nullptr || !node->agent || node->agent->disk_free < 0) {
    return;  // cannot be seen, so nothing is claimed
  }
  const auto& facts = *node->agent;
  // A rewritten chunk needs the size of the largest file beside it, a merged one a whole chunk.
  const auto rewrite = std::max({facts.largest_chunk, facts.chunk_size, std::int64_t{0}});
  if (facts.disk_free < rewrite + gate.limit) {
    out.push_back(measured(
        closed(gate.name, "disk", node->name,
               fmt::format("{} bytes are free; the largest rewrite needs {} and {} must stay free",
                           facts.disk_free, rewrite, gate.limit),
               "make room on the node's disk"),
        fmt::format("{} bytes free", facts.disk_free),
        fmt::format("{} bytes", rewrite + gate.limit)));
  }
}

void agents_answer(const Gate& gate, const ClusterSnapshot& snapshot, const NodeSnapshot*,
                   States& out) {
  for (const auto& node : snapshot.nodes) {
    if (node.has_agent() && !node.agent_answered) {
      out.push_back(
          closed(gate.name, "agent-gone", node.name,
                 node.agent_problem.empty() ? "its agent does not answer" : node.agent_problem,
                 "start verger-agent on that machine"));
    }
  }
}

void leader_settled(const Gate& gate, const ClusterSnapshot& snapshot, const NodeSnapshot*,
                    States& out) {
  if (snapshot.leader_stable_ms < gate.limit) {
    const auto stable = std::max<std::int64_t>(snapshot.leader_stable_ms, 0);
    out.push_back(
        measured(closed(gate.name, "election-recent", "",
                        fmt::format("the leader has been the same for {} ms, {} are asked for",
                                    stable, gate.limit),
                        "wait"),
                 fmt::format("{} ms", stable), fmt::format("{} ms", gate.limit)));
  }
}

void hours(const Gate& gate, const ClusterSnapshot& snapshot, const NodeSnapshot*, States& out) {
  if (!snapshot.hours || snapshot.hours->open) {
    return;
  }
  const auto& now = *snapshot.hours;
  const auto until = now.until ? format_ticks(*now.until) : std::string("further notice");
  out.push_back(measured(
      closed(gate.name, "outside-hours", "", fmt::format("{}; closed until {}", now.reason, until),
             "it goes on by itself when its hours begin"),
      "closed since " + format_ticks(now.since), "open from " + until));
}

void not_leader(const Gate& gate, const ClusterSnapshot&, const NodeSnapshot* step_node,
                States& out) {
  const auto* node = step_node;
  if (node != nullptr && is_up(*node) && node->role == Role::kLeader) {
    auto state = closed(gate.name, "is-leader", node->name, "it leads the cluster",
                        "the leader's turn is the last");
    state.verdict = GateVerdict::kPutOff;
    out.push_back(std::move(state));
  }
}

using Check = void (*)(const Gate&, const ClusterSnapshot&, const NodeSnapshot*, States&);
constexpr std::pair<std::string_view, Check> kChecks[] = {
    {"right-cluster", right_cluster},
    {"voters-alive", voters_alive},
    {"one-leader", one_leader},
    {"quorum-margin", quorum_margin},
    {"lag-below", lag_below},
    {"nobody-scavenges", nobody_scavenges},
    {"others-idle", others_idle},
    {"idle", idle},
    {"auto-scavenge-off", auto_scavenge_off},
    {"disk", disk},
    {"agents-answer", agents_answer},
    {"leader-settled", leader_settled},
    {"hours", hours},
    {"not-leader", not_leader},
};

}  // namespace

std::vector<GateState> evaluate(const Gate& gate, const ClusterSnapshot& snapshot,
                                std::string_view node) {
  return evaluate(gate, snapshot, snapshot.find(node));
}

std::vector<GateState> evaluate(const Gate& gate, const ClusterSnapshot& snapshot,
                                const NodeSnapshot* node) {
  States out;
  const auto* check =
      std::ranges::find(kChecks, gate.name, &std::pair<std::string_view, Check>::first);
  if (check == std::end(kChecks)) {
    out.push_back(closed(gate.name, "unknown-gate", "",
                         fmt::format("nobody knows the gate {}", gate.name),
                         "use a controller that knows it"));
    return out;
  }
  check->second(gate, snapshot, node, out);
  if (out.empty()) {
    out.push_back(closed(gate.name, "", "", "", ""));
    out.back().verdict = GateVerdict::kOpen;
  }
  std::ranges::sort(out, {}, [](const GateState& s) { return std::tie(s.node, s.code, s.reason); });
  return out;
}

}  // namespace verger::planner
