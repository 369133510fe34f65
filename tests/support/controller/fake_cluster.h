#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nodeagent/api/agent_facts.h"
#include "nodeagent/api/node.h"
#include "nodeagent/http/client.h"
#include "tests/support/controller/fake_backups.h"
#include "tests/support/controller/fake_certificates.h"
#include "tests/support/controller/fake_restore.h"
#include "tests/support/controller/fake_sizes.h"
#include "tests/support/controller/virtual_time.h"

namespace verger::test {

/// What becomes of one request.
enum class Fate : std::uint8_t {
  kArrives,
  kRefusedConnection,  ///< kUnavailable: certainly not sent
  kLost,               ///< kUnknownOutcome, never arrived
  kReplyLost,          ///< kUnknownOutcome, carried out
};

struct FakeOperation {
  api::OperationRequest request;
  api::OperationStatus status;
  std::string scavenge_id;
  Monotonic since{};
  Ticks begun_at{};
  /// What it reports from then on; nullopt: what `status` says.
  std::optional<std::pair<Monotonic, api::OperationStatus>> later{};
};

struct FakeScavenge {
  std::string id;
  std::int64_t point = 0;
  Monotonic ends{};
  bool resumed = false;
};

struct FakeNode {
  std::string name;
  int index = 0;
  bool up = true;
  bool member = true;  ///< the others have heard of it
  bool agent_up = true;
  bool hangs = false;  ///< it takes connections and answers nothing, as while it is frozen
  bool agent_hangs = false;
  api::NodeState state = api::NodeState::kFollower;
  std::string instance;
  std::int32_t priority = 0;
  std::int64_t writer = 10'000;
  bool read_only_replica = false;
  std::string version = "24.6.0";
  std::string database = "db-1";

  std::optional<std::int64_t> last_finished;
  std::optional<std::int64_t> unfinished;
  std::optional<FakeScavenge> running;
  std::vector<api::ScavengeEvent> log;
  std::string digest = "aa";
  std::string readable_digest = "rr";
  /// Of the work on its digest: how long it took so far, and since when it runs now.
  std::chrono::milliseconds digest_done{0};
  std::optional<Monotonic> digest_since;
  /// Chunk files, where the agent has it: which one is written to, and what those below it hold.
  std::int64_t newest_chunk = -1;
  std::int64_t complete_bytes = -1;
  /// What it reports once a scavenge has merged chunks with what was completed since.
  struct Compared {
    std::int64_t chunk = -1;
    std::int64_t bytes = -1;
    std::int64_t completed = -1;
  };
  std::optional<Compared> compared;
  std::int64_t index_disk_free = 0;  ///< 0: not reported
  std::int64_t largest_table = -1;
  bool ghost = false;  ///< the others' gossip calls it alive though it is down
  std::int64_t disk_free = std::int64_t{1} << 39U;
  std::chrono::milliseconds clock_ahead{0};
  std::string agent_version = "0.1.0";
  std::string agent_says_version;  ///< of the node; empty: the truth
  bool service_control = true;     ///< the agent can stop and start it
  std::string online_problem;      ///< empty: chunk files can be switched in
  bool index_merging = false;
  bool has_metrics = true;
  /// Scavenged while it is stopped, by the operation with this id.
  struct Offline {
    std::string operation;
    std::int64_t point = 0;
    Monotonic ends{};
  };
  std::optional<Offline> offline;
  /// Scavenged by its agent while it serves; what is switched stays.
  struct Online {
    std::string operation;
    std::int64_t point = 0;
    Monotonic begins{};
    Monotonic ends{};
  };
  std::optional<Online> online;
  /// Codes with which its next online scavenges fail.
  std::vector<std::string> online_fails;
  std::int64_t lost_streams = 0;
  std::vector<std::string> damage;  ///< that a verification finds: files
  /// The agent's last look finds a gate closed, as often as this says.
  int closed_at_last_look = 0;
  /// How its next scavenges end, instead of "Success": "Errored", or "Interrupted: TEXT" as up to
  /// 24.6. What did not end well stays unfinished.
  std::vector<std::string> next_ends;
  /// A scavenge that resumes has nothing to report between its start and its end; the one before
  /// it had done so.
  bool resumes_quietly = false;
  /// POST scavenge is refused, as while a redaction holds the chunk lock, as often as this says.
  int chunk_lock_held = 0;
  std::string files_problem;  ///< of the agent
  /// By name; empty: it does not show its options.
  std::map<std::string, std::string> options{};
  std::string stays_down;  ///< why the agent has given up starting it
  std::string signs_as;    ///< the address in its $scavenges entries; empty: its own
  api::DirectoryFacts database_directory{};
  api::DirectoryFacts index_directory{};
  /// Points that its log has; all where not set.
  std::optional<std::size_t> visible_points;

  FakeFiles files{};
  FakeSize size{};

  // the agent's journal: survives its restart
  std::map<std::string, FakeOperation> operations;
  std::int64_t highest_epoch = 0;
  std::map<std::string, Monotonic> permits;

  // what the tests count
  std::map<std::int64_t, int> finished;  ///< point -> times
  int resigns = 0;
  int asked_for_metrics = 0;
  int scavenge_starts = 0;
  int stops = 0;  ///< of its service
  int online_starts = 0;
  std::vector<std::string> digest_requests;  ///< "readable 50", "records 100", "stop", "stop keep"

  /// The state of a scavenge names one point: while a later one is unfinished, the last that was
  /// reached is not seen.
  [[nodiscard]] std::optional<std::int64_t> shown_finished() const {
    return unfinished ? std::nullopt : last_finished;
  }
};

/// Three or more nodes "n1"... with agents, that answer the node interface on port 2113 and the
/// agent interface on 2114 of "10.0.0.<index>". State changes are worked out at each request.
/// n1 leads.
class FakeCluster final : public http::Client {
 public:
  explicit FakeCluster(VirtualTime& time, int voters = 3);

  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds deadline) override;

  FakeNode& node(const std::string& name);
  FakeNode* leader();
  void add_replica();
  /// A machine with an agent and a stopped server, which nobody has heard of: not to be registered
  /// by ControllerHarness::register_cluster(). Once it is started it is a member.
  void add_spare(bool read_only_replica);
  /// A client of the node interface: not through the controller.
  std::string start_by_hand(const std::string& name);
  void stop_by_hand(const std::string& name);
  /// The leadership goes to `name` without a request.
  void elect(const std::string& name);
  void restart(const std::string& name);
  [[nodiscard]] int total_resigns() const;

  std::vector<FakeNode> nodes;
  std::vector<std::int64_t> points;  ///< positions; the index is the number
  /// Status with which a node answers reads of the points; 404: it has no such route.
  int points_answer = 404;
  std::int32_t epoch = 1;
  bool agents = true;
  /// Of the servers' own auto-scavenge: "Waiting", "Paused"; empty: they have none.
  std::string auto_scavenge;
  std::vector<std::string> auto_scavenge_asked;  ///< "pause", "resume"
  /// Voters elect the one that resigned as often as this says.
  int resigner_wins = 0;
  std::chrono::milliseconds scavenge_takes{2'000};
  std::chrono::milliseconds election_takes{300};
  /// Of the cluster, name -> status, as the leader lists them; nullopt: the servers offer none.
  std::optional<std::map<std::string, std::string>> projections;
  std::optional<std::map<std::string, std::string>> subscriptions;  ///< by "stream::group"
  bool may_read_work = true;  ///< false: the user lacks the role
  /// What was requested to start again: "p1", "all projections", "all subscriptions".
  std::vector<std::string> work_started;
  std::chrono::milliseconds digest_takes{0};
  bool knows_digests = true;     ///< false: agents are of a version to which they are no operation
  int digest_failures = 0;       ///< so many of the next ones find no room
  std::size_t most_digests = 0;  ///< that were computed at a time
  /// Of TLS nodes; null: they have none.
  std::unique_ptr<FakeCertificateCluster> certificates;
  /// Of the agents; null: they know no backups.
  std::unique_ptr<FakeBackups> backups;
  int copies_beside_scavenges = 0;  ///< that were unusable, since one ran meanwhile
  /// What vergerd's own connection to a node is shown.
  net::awaitable<Result<std::string>> served_chain(http::Endpoint of);
  /// How long a `certificate_switch` of an agent takes.
  std::chrono::milliseconds switch_takes{0};
  /// In the agents' repository "main".
  std::vector<api::BackupGeneration> restorable{fake_backup()};
  bool knows_restores = false;  ///< else agents are of a version before them
  std::chrono::milliseconds restore_takes{2'000};
  /// A server that starts beside a leader, until it follows.
  std::chrono::milliseconds catch_up_takes{1'000};
  std::int32_t restored_epoch = 0;  ///< of restored files that start without any other server
  /// A server on restored files and one on others have run at the same time.
  bool mixed_histories = false;
  std::chrono::milliseconds restart_takes{500};  ///< with another size
  /// A leader takes no followers of another size, as the embedded node.
  bool sizes_differ_apart = false;
  /// Voters ran that could have elected two leaders.
  bool two_quorums = false;
  /// Not by an agent: a service manager, or an operator.
  void start_by_itself(const std::string& name);
  /// Called for each request that may act; nullopt = arrives.
  std::function<std::optional<Fate>(const FakeNode&, const http::Request&)> fate;
  /// Changes an answer into what another kind of server would say.
  std::function<void(const FakeNode&, const http::Request&, http::Response&)> dress;
  /// Called when a request that may act has arrived and was carried out, before its answer.
  std::function<void(const FakeNode&, const http::Request&)> acted;
  /// Of kinds of operations that this has nothing of: carries one out, at once; false: it does not
  /// know the kind either.
  std::function<bool(FakeNode&, FakeOperation&)> operate_more;
  /// Largest count of voters that were down at the same time because an agent stopped them.
  bool tells_progress = false;  ///< running scavenges have saved more with each look
  int most_stopped = 0;

  /// Works out what has happened until now; each request does so first.
  void pass_time();

 private:
  void finish_election();
  /// Projections and persistent subscriptions; nullopt: another route is meant.
  std::optional<http::Response> work_answer(const http::Request& request);
  http::Response node_answer(FakeNode& node, const http::Request& request);
  http::Response agent_answer(FakeNode& node, const http::Request& request);
  /// Of a certificate kind; the outcome is known at once, and reported once it is over.
  bool operate_certificates(FakeNode& node, FakeOperation& operation);
  /// Of a kind of backups: begun, stopped, and ended once it has lasted its time.
  bool begin_backup_work(FakeNode& node, FakeOperation& operation);
  void end_backup_work(FakeNode& node, FakeOperation& operation, bool stopped);
  std::optional<http::Response> restorable_answer(const FakeNode& node,
                                                  const http::Request& request);
  /// Of a kind of restores; one that lasts ends in look_at_histories().
  bool operate_restore(FakeNode& node, FakeOperation& operation);
  std::optional<http::Response> size_answer(const FakeNode& node, const http::Request& request);
  bool operate_size(FakeNode& node, FakeOperation& operation);
  void look_at_sizes();
  /// Of running voters of its size.
  [[nodiscard]] bool has_own_quorum(const FakeNode& node) const;
  void cancel_restore(FakeNode& node, const std::string& operation);
  void finish_restore(FakeNode& node);
  void stop_server(FakeNode& node, const std::string& operation);
  void begin_election_if_possible();
  void look_at_histories();
  http::Response start_operation(FakeNode& node, const http::Request& request);
  api::Gossip gossip_of(const FakeNode& node) const;
  api::AgentFacts facts_of(const FakeNode& node, std::int64_t chunks_below = -1) const;
  void look_at_digest(FakeNode& node, FakeOperation& operation);
  void stop_digest(FakeNode& node, FakeOperation& operation, bool keep);
  Ticks now_at(const FakeNode& node) const;
  std::string start_scavenge(FakeNode& node, bool sync_only);
  void end_scavenge(FakeNode& node, const std::string& how);
  void begin_offline(FakeNode& node, const std::string& operation, std::int64_t point);
  /// The service starts again, with the point reached or not.
  void end_offline(FakeNode& node, bool finished);
  void begin_online(FakeNode& node, FakeOperation& operation);
  void end_online(FakeNode& node, bool finished);
  void resign(FakeNode& node);

  VirtualTime& time_;
  int next_id_ = 1;
  std::string resigning_;
  std::optional<Monotonic> election_ends_;
};

}  // namespace verger::test
