#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nodeagent/api/node.h"
#include "nodeagent/client/dialect.h"
#include "nodeagent/client/outcome.h"
#include "nodeagent/http/message.h"

/// What an answer of the node interface proves: pure functions, so that recorded answers can be fed
/// to them. A success code alone proves nothing (node-interface.md, 1.1 and 8.2): `done` needs the
/// code and the body that the route promises.
namespace verger::client {

struct StartedScavenge {
  std::string id;
};
struct StoppedScavenge {
  std::string id;
};
enum class LastResult : std::uint8_t { kUnknown, kInProgress, kSuccess, kStopped, kErrored };
struct LastScavenge {
  std::string id;  ///< empty where the node does not know (after a restart)
  LastResult result = LastResult::kUnknown;
};
struct MergeIndexes {
  std::string id;
};
struct Login {
  std::string name;
  std::vector<std::string> groups;
  [[nodiscard]] bool may_operate() const;  ///< in $admins or $ops
};
struct Live {
  bool ready = false;
};
/// The current statuses in /metrics; empty where the node does not tell.
struct StatusLines {
  std::string node;      ///< "Leader", "PreLeader - ..."
  std::string index;     ///< "Idle", "Merging"
  std::string scavenge;  ///< "Idle", "Chunk execution Phase"
};
struct Stats {
  std::int64_t checksum = -1;  ///< the writer checkpoint, at most one second old
  std::int64_t checksum_non_flushed = -1;
  std::string process_start;
  std::int64_t process_id = 0;
  std::int64_t disk_free_bytes = -1;  ///< of the fullest drive that is listed
};
/// Of GET /info/options, what an agent's own configuration has to agree with. As the node was given
/// them: a path may be relative to the server's working directory, or inside of its container.
struct NodeSettings {
  std::string database;
  std::string index;  ///< empty: "index" in `database`
  // Empty: not configured.
  std::string certificate_file{};
  std::string private_key_file{};
  std::string trusted_roots{};
  std::string reserved_common_name{};
  /// DisableClientAuthEkuValidation; false also where the server has no such option.
  bool client_usage_disabled = false;
  std::int32_t cluster_size = 0;  ///< ClusterSize; 0: not reported
  /// Where it comes from, as the server calls it (24.6 and later): "Command Line"; may be empty.
  std::string cluster_size_source{};
};
enum class AutoScavengeState : std::uint8_t {
  kNotInstalled,
  kNotEnabled,
  kNotConfigured,
  kWaiting,
  kInProgress,
  kPausing,
  kPaused,
};
struct AutoScavenge {
  AutoScavengeState state = AutoScavengeState::kNotInstalled;
  std::string schedule;  ///< cron text; empty: none
  /// It may start scavenges or resign leaders by itself.
  [[nodiscard]] bool active() const {
    return state == AutoScavengeState::kWaiting || state == AutoScavengeState::kInProgress ||
           state == AutoScavengeState::kPausing;
  }
};
struct Appended {
  std::string location;
  std::int64_t first_number = -1;
};
struct StreamEvent {
  std::string stream;
  std::int64_t number = 0;
  std::string type;
  std::string id;
  std::string data;      ///< as the feed has it: JSON text; empty where redacted or not JSON
  std::string metadata;  ///< the same
  bool is_redacted = false;
};
struct StreamPage {
  std::vector<StreamEvent> events;  ///< newest first in both directions
  bool head_of_stream = false;
  std::string previous;  ///< URI of the newer page; empty: there is none. An empty page is no end.
  std::string next;      ///< URI of the older page
};

Outcome<api::Gossip> parse_answer_gossip(const http::Response& response);
Outcome<api::NodeInfo> parse_answer_info(const http::Response& response);
Outcome<Nothing> parse_answer_ping(const http::Response& response);
/// 204 is `unknown` (no_leader_known) with ready = true: a voter without a leader says so too.
Outcome<Live> parse_answer_live(const http::Response& response);
/// 200 is `unknown` (accepted) with the id: the run can fail at once, or have nothing to do.
Outcome<StartedScavenge> parse_answer_start_scavenge(const http::Response& response,
                                                     const NodeDialect& dialect);
Outcome<api::CurrentScavenge> parse_answer_current(const http::Response& response);
Outcome<LastScavenge> parse_answer_last(const http::Response& response);
/// 404 is `unknown` (nothing_to_stop): the node says so also while it is still ending one.
Outcome<StoppedScavenge> parse_answer_stop(const http::Response& response,
                                           const NodeDialect& dialect);
/// resign, priority, reloadconfig, shutdown: 200 is always `unknown` (queued).
Outcome<Nothing> parse_answer_queued(const http::Response& response);
/// 200 is `unknown` (accepted): there is no route for that id.
Outcome<MergeIndexes> parse_answer_merge_indexes(const http::Response& response);
Outcome<Login> parse_answer_login(const http::Response& response);
/// Both $scavenges routes. A 404 that a route gave is an empty history.
Outcome<std::vector<api::ScavengeEvent>> parse_answer_scavenges(const http::Response& response);
/// Of one run. For about a second after its start the server refuses users in $ops: the rights of
/// the run's stream are not written yet. So a missing role is `refused` (not_ready) here; a role
/// that is really missing shows on every other route.
Outcome<std::vector<api::ScavengeEvent>> parse_answer_scavenge_log(const http::Response& response);
Outcome<StatusLines> parse_answer_metrics(const http::Response& response);
Outcome<Stats> parse_answer_stats(const http::Response& response);
Outcome<NodeSettings> parse_answer_settings(const http::Response& response);
Outcome<AutoScavenge> parse_answer_auto_scavenge(const http::Response& response);
Outcome<Nothing> parse_answer_auto_scavenge_change(const http::Response& response);
Outcome<Appended> parse_answer_append(const http::Response& response);
Outcome<StreamPage> parse_answer_page(const http::Response& response);

}  // namespace verger::client
