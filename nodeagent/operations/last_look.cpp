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

/// What the checks look at.
struct GateLook {
  LocalNode node;
  FileSystem& files;
  std::int64_t threads = 1;
  Seen seen{};

  [[nodiscard]] LastLook gossip() const { return {seen.gossip, seen.self}; }
};

// Checks: what is closed, empty where nothing is; an error where the node's own state cannot be
// seen.
using GateAnswer = net::awaitable<Result<std::string>>;

/// Under steady writes a follower's old entry lacks what was written since, beside the leader's
/// own. So it has until its next one to reach where the leader was at the first look.
GateAnswer lag_below(GateLook& look, std::int64_t limit) {
  const auto position = look.gossip().leader_position();
  if (!position) {
    co_return std::string();  // one-leader says so
  }
  const auto until = look.node.clock.monotonic() + kGossipAge;
  for (;;) {
    auto why = look.gossip().lag_below(limit, *position);
    if (why.empty() || look.node.clock.monotonic() >= until) {
      co_return why;
    }
    co_await look.node.timers.sleep_for(kBetweenLooks);
    VERGER_CO_TRY(look.seen, co_await look_at_gossip(look.node));
  }
}
GateAnswer voters_alive(GateLook& look, std::int64_t limit) {
  co_return look.gossip().voters_alive(limit);
}
GateAnswer one_leader(GateLook& look, std::int64_t) { co_return look.gossip().one_leader(); }
GateAnswer quorum_margin(GateLook& look, std::int64_t limit) {
  co_return look.gossip().quorum_margin(limit);
}
GateAnswer not_leader(GateLook& look, std::int64_t) { co_return look.gossip().not_leader(); }
GateAnswer room_on_disks(GateLook& look, std::int64_t limit) {
  co_return disk(look.node.inspection(), look.files, limit, look.threads);
}
GateAnswer no_scavenge(GateLook& look, std::int64_t) {
  const auto current = client::to_result(co_await look.node.client.current_scavenge());
  if (!current) {
    co_return "whether a scavenge runs here cannot be seen: " + current.error().message;
  }
  co_return current->id.empty() ? std::string() : fmt::format("scavenge {} runs here", current->id);
}

struct GateCheck {
  std::string_view name;
  std::string_view former_name;  ///< as a controller of version 0.1 has it
  GateAnswer (*check)(GateLook& look, std::int64_t limit);
};

// In the order of the checks: first what may take a while, since all others go by what is seen
// after it. planner/gate_table.cpp names the same gates; a test compares the two.
constexpr GateCheck kGateChecks[] = {
    {"lag-below", "", lag_below},
    {"voters-alive", "", voters_alive},
    {"one-leader", "", one_leader},
    {"quorum-margin", "", quorum_margin},
    {"not-leader", "", not_leader},
    {"disk", "", room_on_disks},
    {"no-scavenge-running", "nobody-scavenges", no_scavenge},
    {"no-scavenge-on-node", "idle", no_scavenge},
};

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
  constexpr std::string_view kUnseen = "the node does not tell its own state: ";
  GateLook look{.node = node, .files = files, .threads = threads_of(parameters_json)};
  if (auto seen = co_await look_at_gossip(node)) {
    look.seen = std::move(*seen);
  } else {
    co_return std::string(kUnseen) + seen.error().message;
  }
  for (const auto& entry : kGateChecks) {
    for (const auto& gate : *gates) {
      if (gate.name != entry.name &&
          (entry.former_name.empty() || gate.name != entry.former_name)) {
        continue;
      }
      const auto why = co_await entry.check(look, gate.limit);
      if (!why) {
        co_return std::string(kUnseen) + why.error().message;
      }
      if (!why->empty()) {
        co_return fmt::format("{}: {}", entry.name, *why);
      }
    }
  }
  co_return std::string();
}

std::vector<std::string_view> checked_gates() {
  std::vector<std::string_view> out;
  for (const auto& entry : kGateChecks) {
    out.push_back(entry.name);
  }
  return out;
}

}  // namespace verger::agent
