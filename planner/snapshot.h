#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.h"
#include "planner/preflight.h"

/// What was seen of a cluster at one moment. Plain values: who took it is no business of the
/// planner. Sizes and positions are bytes; -1 means "not known".
namespace verger::planner {

/// Gossip's states, as far as planning distinguishes them.
enum class Role : std::uint8_t { kLeader, kFollower, kReadOnlyReplica, kOther };
std::string_view to_string(Role role);

/// A scavenge point of the log (docs/formats/scavenge.md). `number` counts from 0.
struct Point {
  std::int64_t number = -1;
  std::int64_t position = -1;
  std::int32_t threshold = 0;
  std::string effective_now;
  friend bool operator==(const Point&, const Point&) = default;
};

/// A scavenge that was begun and has not reached its point.
struct Unfinished {
  Point point;
  std::string stage;  ///< "Accumulating" ... "Cleaning"
  friend bool operator==(const Unfinished&, const Unfinished&) = default;
};

/// Work that an agent is at, of its own journal.
struct AgentWork {
  std::string id;
  std::string kind;  ///< "scavenge", "backup", "redaction", ...
  friend bool operator==(const AgentWork&, const AgentWork&) = default;
};

/// What only an agent can report of its node.
struct AgentFacts {
  std::string version;
  bool service_control = false;  ///< it can stop and start its server
  std::string offline_problem;   ///< why it must not scavenge a stopped server's files
  /// Why chunk files cannot be switched into its running server; empty: they can.
  std::string online_problem = "it is not known";
  std::string database_id;    ///< empty: not known
  std::string files_problem;  ///< why it cannot read its node's files: points, state, index
  std::string node_problem;   ///< why its node does not let it operate it
  std::string warning{};      ///< for people; nothing is decided by it
  std::string log_as_of{};    ///< ISO-8601: when the agent read its log; empty: it always knows
  std::vector<Point> points;  ///< of the committed log, oldest first
  std::optional<Point> last_finished;
  std::optional<Unfinished> unfinished;
  std::int64_t disk_total = -1;
  std::int64_t disk_free = -1;
  std::int64_t database_bytes = -1;
  std::int64_t event_count = -1;
  std::int64_t chunk_files = -1;
  std::int64_t largest_chunk = -1;
  std::int64_t chunk_size = -1;
  std::int64_t newest_chunk = -1;          ///< number of the one that is being written
  std::int64_t complete_chunk_bytes = -1;  ///< of the chunk files below it
  /// Of the file system that holds the index, which may be another than the database's.
  std::int64_t index_disk_free = -1;
  std::int64_t largest_table = -1;  ///< bytes of the index's largest PTable
  std::int64_t largest_merge = -1;  ///< bytes of the PTables that the next merge puts together
  std::int64_t writer_checkpoint = -1;
  std::int64_t highest_controller_epoch = 0;
  /// Streams of its index that its existence filter does not have: to a server they do not exist
  /// after its next start. -1: not counted yet.
  std::int64_t lost_streams = -1;

  /// True where the node has the chunk with this position, and has completed it.
  [[nodiscard]] bool chunk_is_complete(std::int64_t position) const {
    return chunk_size > 0 && writer_checkpoint >= 0 && position >= 0 &&
           position / chunk_size < writer_checkpoint / chunk_size;
  }
};

/// The server's own scavenging by schedule (24.10 and later).
enum class AutoScavenge : std::uint8_t {
  kAbsent,
  kNotConfigured,
  kWaiting,
  kInProgress,
  kPausing,
  kPaused,
  kUnknown
};
std::string_view to_string(AutoScavenge state);

/// A scavenge that runs, as far as its node reports.
struct Running {
  std::string scavenge_id;  ///< may be empty where only a phase is known
  std::string phase;
  std::int64_t chunks_done = -1;
  std::int64_t chunks_total = -1;
  std::int64_t bytes_saved = -1;
};

/// A clock, as its owner reported it. Ahead is positive.
struct ClockSkew {
  std::int64_t ahead_ms = 0;  ///< of the controller's clock
  std::int64_t error_ms = 0;  ///< how far off that may be: the question takes time
  friend bool operator==(const ClockSkew&, const ClockSkew&) = default;
};

/// A certificate, wherever it was seen.
struct CertificateSeen {
  enum class Kind : std::uint8_t { kLeaf, kIntermediate, kRoot, kUser };
  Kind kind = Kind::kLeaf;
  std::string subject{};
  std::string serial{};
  std::string fingerprint{};  ///< SHA-256
  Ticks not_before{};
  Ticks not_after{};
  friend bool operator==(const CertificateSeen&, const CertificateSeen&) = default;
};
std::string_view to_string(CertificateSeen::Kind kind);

/// A certificate, as a new connection was shown it.
struct ServedCertificate {
  std::string serial;
  std::string of;  ///< "node" or "agent"
  Ticks not_after;
  /// Of its intermediates and its root, as far as they are known, the one that ends first.
  std::string issuer{};  ///< its subject; empty: none is known
  Ticks issuer_not_after{};
  /// Leaf, intermediates as they were shown with it, and the root as the controller trusts it: as
  /// far as they are known.
  std::vector<CertificateSeen> chain{};
  friend bool operator==(const ServedCertificate&, const ServedCertificate&) = default;
};

/// A certificate of a user, in a file of a node's machine.
struct UserCertificateSeen {
  std::string path{};
  CertificateSeen certificate{};
  friend bool operator==(const UserCertificateSeen&, const UserCertificateSeen&) = default;
};

/// What a node's agent finds in the certificate files that the node is configured with.
struct CertificateFiles {
  std::vector<CertificateSeen> chain{};      ///< leaf first
  std::vector<CertificateSeen> roots{};      ///< that the node trusts
  std::string problem{};                     ///< what could not be read, and why; empty: all was
  std::vector<UserCertificateSeen> users{};  ///< in the files that the agent is configured with
  std::vector<std::string> user_problems{};  ///< of those that cannot be read
  friend bool operator==(const CertificateFiles&, const CertificateFiles&) = default;
};

/// One registered node, as it spoke of itself.
struct NodeSnapshot {
  std::string name;             ///< as registered; never changes
  std::string url;              ///< of the node interface
  std::string agent_url;        ///< empty: the node has no agent
  bool answered = false;        ///< the node interface answered about itself
  std::string problem;          ///< why not, in words
  std::string remedy;           ///< what to do about it, where starting the node is not the answer
  bool wrong_identity = false;  ///< it answers, but is not the node that was registered
  Ticks taken_at;               ///< when its answer arrived

  std::string instance_id;  ///< of the process; another one after each restart
  std::string version;      ///< "24.6.0"
  std::string state;        ///< as in gossip, "CatchingUp"
  Role role = Role::kOther;
  bool alive = false;
  bool read_only_replica = false;
  std::int32_t priority = 0;
  std::int32_t epoch_number = -1;
  std::string epoch_id;
  std::int64_t writer_checkpoint = -1;
  std::int64_t chaser_checkpoint = -1;
  std::int64_t last_commit_position = -1;
  std::string endpoint;  ///< "ip:port" as it calls itself
  /// Instance id of the node it takes for the leader; empty when it sees none, or several.
  std::string sees_leader;
  /// Names of registered nodes which it calls dead.
  std::vector<std::string> sees_dead;
  /// Priorities of live registered nodes in its gossip, by name; its own among them.
  std::map<std::string, std::int32_t> sees_priorities;

  /// nullopt: not known, because the route is missing or did not answer.
  std::optional<bool> scavenge_running;
  Running running;  ///< meaningful while scavenge_running is true
  AutoScavenge auto_scavenge = AutoScavenge::kUnknown;
  std::optional<bool> index_merging;            ///< nullopt: not queried, or not reported
  std::optional<ClockSkew> clock;               ///< nullopt: it reports no time
  std::vector<ServedCertificate> certificates;  ///< without TLS, or not seen: none
  /// nullopt: not asked for, or no agent that can tell.
  std::optional<CertificateFiles> certificate_files{};
  /// The lag some seconds ago, where it was seen then; -1: not known.
  std::int64_t lag_before = -1;
  std::int64_t lag_before_ms = 0;   ///< how long ago that was
  std::int64_t leader_before = -1;  ///< where the leader's log ended then

  bool agent_answered = false;  ///< false also where there is no agent
  std::string agent_problem;
  std::optional<AgentFacts> agent;    ///< nullopt also while its server is stopped
  std::vector<AgentWork> agent_work;  ///< not ended; reported also while the server is stopped
  bool stopped = false;               ///< its agent says that the server is stopped
  std::string stays_down{};           ///< why its agent has given up starting it; empty: it has not

  [[nodiscard]] bool has_agent() const { return !agent_url.empty(); }
  /// What new connections to the node itself are shown; nullptr: not seen.
  [[nodiscard]] const ServedCertificate* served_certificate() const;
  /// Whether the file holds another leaf than the node shows: nothing has reloaded it. nullopt: one
  /// of them is not known.
  [[nodiscard]] std::optional<bool> file_differs_from_served() const;
};

/// Whether maintenance may work now, as the policies' windows say.
struct Hours {
  bool open = true;
  Ticks since;                 ///< start of the present opening or closure
  std::optional<Ticks> until;  ///< its end; nullopt: none within a year
  std::string reason;          ///< "deny window \"office hours\" of policy weekly"
  friend bool operator==(const Hours&, const Hours&) = default;
};

/// What became of a policy's QueryBlocker.
struct QueryResult {
  std::string name;
  std::string value;    ///< the worst of the answer's; empty: there is none
  std::string limit;    ///< "at most 0.5"
  std::string problem;  ///< why there is no value
  bool holds = false;
  friend bool operator==(const QueryResult&, const QueryResult&) = default;
};

/// All members of one cluster. Everything in it is of about `taken_at`, each node's part of its own
/// `taken_at`.
struct ClusterSnapshot {
  std::string cluster;
  Ticks taken_at;
  std::vector<NodeSnapshot> nodes;
  /// Endpoints in gossip that are not registered, and that are alive.
  std::vector<std::string> unregistered;
  /// Members in gossip that are not registered, that vote and do not answer: left by a replaced
  /// node, or a voter that was never registered.
  std::size_t unregistered_voters = 0;
  /// Of the controller's own, for people; nothing is decided by them.
  std::vector<std::string> warnings{};
  /// Set where the members contradict the registration: another database, a foreign cluster.
  std::string wrong_cluster;
  /// How long the same single leader has been seen with the same epoch, by the observer's monotonic
  /// clock; -1 while there is none, or several.
  std::int64_t leader_stable_ms = -1;
  /// nullopt: no window limits the work.
  std::optional<Hours> hours;
  /// Of the policy's queries, as far as they were run.
  std::vector<QueryResult> queries;
  /// Of the operation that a plan is made for; nullopt: it has none, or no plan is made.
  std::optional<Preflight> preflight{};
  /// Nodes that a run is adding, or would: they are looked at like those in `nodes`, and count for
  /// nothing until they are registered.
  std::vector<NodeSnapshot> joining{};

  /// One that is registered, or joins.
  [[nodiscard]] const NodeSnapshot* find(std::string_view name) const;
  /// The only live leader; nullptr when there is none, or several.
  [[nodiscard]] const NodeSnapshot* leader() const;
  /// Registered nodes that vote.
  [[nodiscard]] std::size_t voters() const;
  /// Of all voters the cluster has. Clusters have an odd number of them: where an even number is
  /// registered and gossip has one more, that one is a voter too.
  [[nodiscard]] std::size_t quorum() const {
    const bool one_missing = voters() % 2 == 0 && unregistered_voters > 0;
    return (voters() + (one_missing ? 1 : 0)) / 2 + 1;
  }
  /// Bytes of the log that `node` has not received, not processed or not indexed of what the leader
  /// has, whichever is most (node-interface.md §3.7); -1 when it is not known.
  [[nodiscard]] std::int64_t lag(const NodeSnapshot& node) const;
  /// The newest point that any node has in its log.
  [[nodiscard]] std::optional<Point> latest_point() const;
};

}  // namespace verger::planner
