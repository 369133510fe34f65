#include "nodeagent/operations/last_look.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/quantities.h"
#include "nodeagent/api/agent_facts.h"
#include "nodeagent/api/json_fields.h"
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
  /// Where the leader's log ends; nullopt where one-leader is closed.
  [[nodiscard]] std::optional<std::int64_t> leader_position() const {
    const auto leader = std::ranges::find_if(gossip_.members, leads);
    return leader == gossip_.members.end() ? std::nullopt
                                           : std::optional(leader->writer_checkpoint);
  }
  /// Of that position.
  std::string lag_below(std::int64_t limit, std::int64_t position) const {
    for (const auto& member : gossip_.members) {
      const auto lag = position - member.writer_checkpoint;
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

/// Empty where there is room for it, or that cannot be seen.
std::string room(FileSystem& files, const Path& directory, std::int64_t need,
                 std::string_view what) {
  const auto space = files.space(directory);
  const auto free = space ? static_cast<std::int64_t>(space->available) : need;
  return free >= need ? std::string()
                      : fmt::format("{}: {} free, {} needed for {} and the reserve",
                                    directory.string(), human_bytes(free), human_bytes(need), what);
}

/// What a scavenge writes beside what is there: on the database's disk a chunk for each thread, on
/// the index's, which may be another, the largest table or the largest merge.
std::string disk(const node::NodeInspection* inspection, FileSystem& files, std::int64_t reserve,
                 std::int64_t threads) {
  if (inspection == nullptr) {
    return {};
  }
  const auto chunks = inspection->chunks();
  if (!chunks.problem.empty()) {
    return "the chunk files cannot be listed: " + chunks.problem;
  }
  const auto rewrite = threads * std::max(chunks.largest_bytes, chunks.chunk_size);
  auto why = room(files, inspection->database_directory(), rewrite + reserve,
                  threads == 1 ? std::string("the largest rewrite")
                               : fmt::format("rewriting {} chunks side by side", threads));
  if (!why.empty()) {
    return why;
  }
  const auto tables = inspection->index_tables();
  const auto index = std::max({tables.largest_table, tables.largest_merge, std::int64_t{0}});
  return room(files, inspection->index_directory(), index + reserve,
              tables.largest_merge > tables.largest_table ? "the largest merge of tables"
                                                          : "the largest table");
}

/// Of the parameters, where the kind has it.
std::int64_t threads_of(const std::string& parameters_json) {
  const auto parameters = api::JsonDocument::parse(parameters_json, "parameters");
  std::int32_t threads = 1;
  if (parameters && parameters->root().is_object()) {
    api::Fields(parameters->root(), "parameters").read("threads", threads);
  }
  return std::clamp(threads, 1, 4);
}

/// What others' entries say may be some rounds of gossip old, two seconds each.
constexpr std::chrono::seconds kGossipAge{8};
constexpr std::chrono::milliseconds kBetweenLooks{500};

struct Seen {
  api::Gossip gossip{};
  api::GossipMember self{};
};

net::awaitable<Result<Seen>> look_at_gossip(LocalNode node) {
  Seen out;
  VERGER_CO_TRY(out.gossip, client::to_result(co_await node.client.gossip()));
  VERGER_CO_TRY(out.self, client::to_result(client::own_entry(out.gossip, node.client.node())));
  co_return out;
}

/// Under steady writes a follower's old entry lacks what was written since, beside the leader's
/// own. So it has until its next one to reach where the leader was at the first look.
net::awaitable<Result<std::string>> lag(LocalNode node, std::int64_t limit, Seen& seen) {
  const auto position = LastLook(seen.gossip, seen.self).leader_position();
  if (!position) {
    co_return std::string();  // one-leader says so
  }
  const auto until = node.clock.monotonic() + kGossipAge;
  for (;;) {
    auto why = LastLook(seen.gossip, seen.self).lag_below(limit, *position);
    if (why.empty() || node.clock.monotonic() >= until) {
      co_return why;
    }
    co_await node.timers.sleep_for(kBetweenLooks);
    VERGER_CO_TRY(seen, co_await look_at_gossip(node));
  }
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
  auto seen = co_await look_at_gossip(node);
  // First, since it may take a while; all others go by what is seen after it.
  if (const auto lagging = std::ranges::find(*gates, "lag-below", &api::GateLimit::name);
      seen && lagging != gates->end()) {
    auto why = co_await lag(node, lagging->limit, *seen);
    if (!why) {
      seen = why.error();
    } else if (!why->empty()) {
      co_return "lag-below: " + *why;
    }
  }
  if (!seen) {
    co_return "the node does not tell its own state: " + seen.error().message;
  }
  const LastLook look(seen->gossip, seen->self);
  for (const auto& gate : *gates) {
    std::string why;
    if (gate.name == "voters-alive") {
      why = look.voters_alive(gate.limit);
    } else if (gate.name == "one-leader") {
      why = look.one_leader();
    } else if (gate.name == "quorum-margin") {
      why = look.quorum_margin(gate.limit);
    } else if (gate.name == "not-leader") {
      why = look.not_leader();
    } else if (gate.name == "disk") {
      why = disk(node.inspection(), files, gate.limit, threads_of(parameters_json));
    } else if (gate.name == "nobody-scavenges" || gate.name == "idle") {
      const auto current = client::to_result(co_await node.client.current_scavenge());
      if (!current) {
        why = "whether a scavenge runs here cannot be seen: " + current.error().message;
      } else if (!current->id.empty()) {
        why = fmt::format("scavenge {} runs here", current->id);
      }
    }
    if (!why.empty()) {
      co_return fmt::format("{}: {}", gate.name, why);
    }
  }
  co_return std::string();
}

}  // namespace verger::agent
