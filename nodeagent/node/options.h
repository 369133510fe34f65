#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/file_system.h"
#include "nodeagent/http/client.h"

namespace verger::node {

/// Defaults are the server's (docs/formats/node-interface.md §3.5).
struct NodeTimings {
  using ms = std::chrono::milliseconds;
  /// How often time is looked at; everything below is rounded up to it.
  ms tick{20};
  ms gossip_interval{2000};
  ms gossip_timeout{2500};
  ms dead_member_removal{1'800'000};
  /// How long a starting node looks for an existing leader before it joins elections.
  ms discover_leader{3000};
  /// A round of an election that has not ended by then starts over.
  ms election_timeout{1000};
  ms heartbeat_interval{700};
  /// A link that was silent for so long is dead. (A process that ends closes its links at once;
  /// this is for hosts and networks that vanish. Completing a large chunk keeps a node silent for a
  /// while.)
  ms heartbeat_timeout{5000};
  /// A leader without a quorum of subscribed voters resigns after this.
  ms quorum_loss_wait{3000};
  ms reconnect_delay{500};
  /// A write that is not committed by then is answered "Write timeout": its outcome is unknown.
  ms write_timeout{2000};
  /// Waits of the scavenge point's creation: before the first look, and between looks.
  ms scavenge_point_first_look{500};
  ms scavenge_point_retry{1000};
  /// Checkpoints are synced so often. chaser.chk is written at each tick besides, so that a copy of
  /// the files that is made beside the node has what was committed before it.
  ms checkpoint_interval{1000};
  /// A request on /admin/scavenge that takes longer is answered 408.
  ms request_timeout{10'000};
  /// How long a shutdown waits for requests in flight.
  ms shutdown_grace{5000};

  /// For tests and demos on one machine: elections settle within 300 ms.
  static NodeTimings fast();
};

/// One option as GET /info/options shows it (node-interface.md, 1.10).
struct EffectiveOption {
  std::string name{};  ///< "ClusterSize"
  std::string description{};
  std::string group{};
  std::string value{};   ///< as it was given; secrets as asterisks
  std::string source{};  ///< "Command Line", "Environment Variables", "Yaml", "<DEFAULT>"
  std::string deprecation{};
  std::string type{};  ///< of the schema: "string", "integer", "boolean"
  std::string unit{};  ///< of the schema: "ms", "d"; empty: none
};

/// What tests switch on so that a node behaves as badly as the real one was seen to
/// (node-interface.md, 8). Never set by the program.
struct NodeMisbehaviour {
  /// The DELETE of a scavenge stops it, and the answer never comes (1.7).
  bool lose_stop_answer = false;
  /// For so long after the answer to a stop the run is still there, and not: `current` names it, a
  /// start is refused as it runs, another stop as there is none (1.7).
  std::chrono::milliseconds stop_lingers{0};
  /// The chunk lock is held, as by a redaction: no scavenge starts (1.4).
  bool chunk_lock_held = false;
  /// GET /gossip shows what was so long ago.
  std::chrono::milliseconds gossip_lag{0};
  /// A shutdown leaves the node answering, and alive to the others, for so long.
  std::chrono::milliseconds shutdown_delay{0};
  /// So many times this node, once elected, gives the lead up again after `short_lead`: one
  /// resignation then takes several epochs, and a leader looks settled before it changes (3.4).
  int short_leads = 0;
  std::chrono::milliseconds short_lead{1000};
  /// So many of its own resignations end with itself elected again (3.4).
  int wins_resignations = 0;
  /// A log that has to be cut is cut as the server does it (3.8): the position is noted in
  /// truncate.chk and the process ends with 0; the next start cuts, and ends once more with 0.
  bool exits_to_truncate = false;
  /// So many of its own resignations end the process with 1, while it is ResigningLeader (3.4).
  int resignation_crashes = 0;
  /// $scavengeCompleted is written so much later, or never (6.1).
  std::chrono::milliseconds scavenge_end_delay{0};
  bool lose_scavenge_end = false;
};

/// What a node is started with. Names are those of the server's options.
struct NodeOptions {
  Path database;
  /// Empty: "<database>/index".
  Path index;
  int cluster_size = 1;  ///< voters only
  bool read_only_replica = false;
  std::vector<http::Endpoint> gossip_seeds;  ///< HTTP endpoints of the other nodes
  std::int32_t node_priority = 0;

  std::int32_t chunk_size = 0;  ///< 0: from the database, 256 MiB for a new one
  std::int64_t max_truncation = 268'435'456;
  std::uint64_t max_mem_table_size = 1'000'000;
  int index_cache_depth = 16;
  std::uint64_t stream_existence_filter_size = 256'000'000;
  /// Skip the search for a server that has the files open (where /proc cannot be read).
  bool assume_stopped = false;

  bool enable_atom_pub = false;
  /// Of the data of the events of one append over gRPC.
  std::int64_t max_append_size = 1'048'576;
  bool disable_scavenge_merging = false;
  bool unsafe_ignore_hard_delete = false;
  int scavenge_history_max_age_days = 30;
  std::uint32_t scavenge_backend_page_size = 16384;
  std::uint64_t scavenge_backend_cache_size = 67'108'864;
  std::uint32_t scavenge_hash_users_cache_capacity = 100'000;

  /// Every caller is the system account; credentials are not looked at (the server's Insecure).
  bool insecure = true;
  /// Passwords of `admin` and `ops`, for a database that has no users yet.
  std::string default_admin_password = "changeit";
  std::string default_ops_password = "changeit";
  /// Facts of the node and metrics without credentials.
  bool allow_anonymous_endpoint_access = false;
  /// GET /gossip without credentials, regardless of the option before.
  bool override_anonymous_endpoint_access_for_gossip = true;
  /// Streams whose rights allow it, without credentials.
  bool allow_anonymous_stream_access = false;
  bool disable_admin_ui = false;        ///< /admin/* and the routes of $scavenges are not there
  bool disable_stats_on_http = false;   ///< nor are /stats and /metrics
  bool disable_gossip_on_http = false;  ///< nor is GET /gossip

  NodeTimings timings;
  NodeMisbehaviour misbehaviour;

  /// All options with the values that count, for /info/options; secrets are masked already.
  std::vector<EffectiveOption> effective;
};

/// Where others reach the node; known once its ports are bound.
struct NodeAddresses {
  http::Endpoint http;         ///< advertised; also its name among the members
  http::Endpoint replication;  ///< the frame transport
};

}  // namespace verger::node
