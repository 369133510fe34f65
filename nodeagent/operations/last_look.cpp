#include "nodeagent/operations/last_look.h"

#include <algorithm>
#include <fmt/format.h>

#include "nodeagent/api/agent_facts.h"
#include "nodeagent/client/judge.h"

namespace verger::agent {
namespace {

using api::NodeState;

bool is_settled(const api::GossipMember& member) {
  return member.state == NodeState::kLeader || member.state == NodeState::kFollower ||
         member.state == NodeState::kReadOnlyReplica;
}

/// What one node's gossip says of the gates.
class LastLook {
 public:
  LastLook(const api::Gossip& gossip, api::GossipMember self)
      : gossip_(gossip), self_(std::move(self)) {}

  std::string voters_alive(std::int64_t needed) const {
    const auto up = settled_voters(/*with_self=*/true);
    return up >= needed ? std::string()
                        : fmt::format("{} voters are up and settled, {} are needed", up, needed);
  }
  std::string one_leader() const {
    const auto count = std::ranges::count_if(gossip_.members, leads);
    return count == 1 ? std::string() : fmt::format("{} nodes lead", count);
  }
  std::string quorum_margin(std::int64_t needed) const {
    const auto up = settled_voters(/*with_self=*/false);
    return up >= needed ? std::string()
                        : fmt::format("voters up without it: {}, needed: {}", up, needed);
  }
  std::string lag_below(std::int64_t limit) const {
    const auto leader = std::ranges::find_if(gossip_.members, leads);
    if (leader == gossip_.members.end()) {
      return {};  // one-leader says so
    }
    for (const auto& member : gossip_.members) {
      const auto lag = leader->writer_checkpoint - member.writer_checkpoint;
      if (member.is_alive && lag > limit) {
        return fmt::format("{}:{} lags {} bytes, the limit is {}", member.http_ip, member.http_port,
                           lag, limit);
      }
    }
    return {};
  }
  std::string not_leader() const {
    return self_.state == NodeState::kLeader ? std::string("it leads") : std::string();
  }

 private:
  [[nodiscard]] std::int64_t settled_voters(bool with_self) const {
    return std::ranges::count_if(gossip_.members, [&](const api::GossipMember& member) {
      return !member.is_read_only_replica && member.is_alive && is_settled(member) &&
             (with_self || member.instance_id != self_.instance_id);
    });
  }
  static bool leads(const api::GossipMember& member) {
    return member.is_alive && member.state == NodeState::kLeader;
  }
  const api::Gossip& gossip_;
  api::GossipMember self_;
};

std::string disk(const node::NodeInspection* inspection, FileSystem& files, std::int64_t reserve) {
  if (inspection == nullptr) {
    return {};
  }
  const auto space = files.space(inspection->database_directory());
  if (!space) {
    return {};  // cannot be seen, so nothing is claimed
  }
  const auto chunks = inspection->chunks();
  if (!chunks.problem.empty()) {
    return "the chunk files cannot be listed: " + chunks.problem;
  }
  const auto rewrite = std::max(chunks.largest_bytes, chunks.chunk_size);
  const auto free = static_cast<std::int64_t>(space->available);
  return free >= rewrite + reserve
             ? std::string()
             : fmt::format("{} bytes are free, {} are needed", free, rewrite + reserve);
}

}  // namespace

net::awaitable<std::string> closed_gates(LocalNode node, FileSystem& files,
                                         std::string parameters_json) {
  const auto gates = api::parse_gates(parameters_json);
  if (!gates) {
    co_return gates.error().message;
  }
  if (gates->empty()) {
    co_return std::string();
  }
  const auto gossip = client::to_result(co_await node.client.gossip());
  auto self = gossip ? client::to_result(client::own_entry(*gossip, node.client.node()))
                     : Result<api::GossipMember>(gossip.error());
  if (!self) {
    co_return "the node does not tell its own state: " + self.error().message;
  }
  const LastLook look(*gossip, *std::move(self));
  for (const auto& gate : *gates) {
    std::string why;
    if (gate.name == "voters-alive") {
      why = look.voters_alive(gate.limit);
    } else if (gate.name == "one-leader") {
      why = look.one_leader();
    } else if (gate.name == "quorum-margin") {
      why = look.quorum_margin(gate.limit);
    } else if (gate.name == "lag-below") {
      why = look.lag_below(gate.limit);
    } else if (gate.name == "not-leader") {
      why = look.not_leader();
    } else if (gate.name == "disk") {
      why = disk(node.inspection(), files, gate.limit);
    } else if (gate.name == "nobody-scavenges" || gate.name == "idle") {
      const auto seen = client::to_result(co_await node.client.current_scavenge());
      if (!seen) {
        why = "whether a scavenge runs here cannot be seen: " + seen.error().message;
      } else if (!seen->id.empty()) {
        why = fmt::format("scavenge {} runs here", seen->id);
      }
    }
    if (!why.empty()) {
      co_return fmt::format("{}: {}", gate.name, why);
    }
  }
  co_return std::string();
}

}  // namespace verger::agent
