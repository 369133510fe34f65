#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"

/// The node interface: what a server answers (docs/formats/node-interface.md).
namespace verger::api {

/// The server's own states (node-interface.md §3.1).
enum class NodeState : std::uint8_t {
  kInitializing,
  kDiscoverLeader,
  kUnknown,
  kPreReplica,
  kCatchingUp,
  kClone,
  kFollower,
  kPreLeader,
  kLeader,
  kManager,
  kShuttingDown,
  kShutdown,
  kReadOnlyLeaderless,
  kPreReadOnlyReplica,
  kReadOnlyReplica,
  kResigningLeader,
};
/// PascalCase as in gossip ("CatchingUp").
std::string_view to_string(NodeState state);
/// Accepts PascalCase, lower case, and the names of 5.0 (Master, Slave, PreMaster).
Result<NodeState> parse_node_state(std::string_view text);

/// A member as gossip shows it. Positions and checkpoints are positions in the log, -1: absent; a
/// port of 0: there is none.
struct GossipMember {
  std::string instance_id{};
  std::string time_stamp{};  ///< ISO-8601 UTC, of the clock of the reporting node
  NodeState state = NodeState::kUnknown;
  bool is_alive = false;
  std::string internal_tcp_ip{};
  std::int32_t internal_tcp_port = 0;
  std::int32_t internal_secure_tcp_port = 0;
  std::string external_tcp_ip{};
  std::int32_t external_tcp_port = 0;
  std::int32_t external_secure_tcp_port = 0;
  std::string http_ip{};
  std::int32_t http_port = 0;
  std::int64_t last_commit_position = -1;
  std::int64_t writer_checkpoint = -1;
  std::int64_t chaser_checkpoint = -1;
  std::int64_t epoch_position = -1;
  std::int32_t epoch_number = -1;
  std::string epoch_id{};
  std::int32_t node_priority = 0;
  bool is_read_only_replica = false;
  std::string es_version{};  ///< may be empty or a placeholder: then read /info
  /// 24.10+: the node's own HTTP endpoint, where http_* is what is advertised; else empty and 0.
  std::string internal_http_ip{};
  std::int32_t internal_http_port = 0;
};

/// GET /gossip: the members as the node that answers sees them, and its own endpoint.
struct Gossip {
  std::vector<GossipMember> members{};
  std::string server_ip{};
  std::int32_t server_port = 0;
};

/// GET /info.
struct NodeInfo {
  std::string version{};  ///< dbVersion or esVersion
  std::string state{};    ///< lower case
  bool atom_pub = false;
  bool user_management = false;
  std::string authentication_type{};  ///< "insecure", "internal", ...; empty before 20.6
  bool is_verger = false;             ///< the embedded node says so in a member of its own
};

/// GET /admin/scavenge/current; empty id = idle.
struct CurrentScavenge {
  std::string id{};
  std::string link{};
};

/// An event of a $scavenges-<id> stream (node-interface.md §6.1).
struct ScavengeEvent {
  std::string type{};
  std::int64_t number = 0;
  std::string scavenge_id{};
  std::string node_endpoint{};
  std::string result{};  ///< of $scavengeCompleted
  std::string error{};
  std::string time_taken{};      ///< as the server writes a duration, "00:00:01.2345678"
  std::int64_t space_saved = 0;  ///< bytes
  std::int32_t chunk_start = 0;
  std::int32_t chunk_end = 0;
  std::int32_t max_chunk_scavenged = 0;
};

/// Parsers take what 5.0 to 26.x send: a member that is missing or null keeps its default, unknown
/// ones are passed over. Error: kCorruption: not JSON, or not of that shape (the message says
/// where).
std::string to_text(const Gossip& gossip);
/// As 24.6 answers, with "verger" where `info.is_verger`.
nlohmann::json to_json(const NodeInfo& info);
nlohmann::json to_json(const CurrentScavenge& current);
Result<Gossip> parse_gossip(std::string_view body);
Result<NodeInfo> parse_info(std::string_view body);
Result<CurrentScavenge> parse_current_scavenge(std::string_view body);
/// A page of an Atom feed in JSON with embedded bodies, in the feed's order: newest first. `number`
/// is the event's own, also in $scavenges, which holds links. Entries that are not as a server
/// writes them about a scavenge (no type, data that is no JSON) are passed over.
Result<std::vector<ScavengeEvent>> parse_scavenge_feed(std::string_view body);

/// The leading dotted numbers of a version text; nullopt for placeholders.
struct Version {
  std::int32_t major = 0;
  std::int32_t minor = 0;
  std::int32_t patch = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};
std::optional<Version> parse_version(std::string_view text);

}  // namespace verger::api
