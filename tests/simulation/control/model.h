#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/random.h"
#include "engine/scavenge/types.h"
#include "nodeagent/api/node.h"
#include "nodeagent/http/message.h"
#include "nodeagent/node/inspection.h"
#include "tests/support/cluster/sim_world.h"

namespace verger::sim {

inline constexpr std::uint16_t kModelNodePort = 2113;

struct ModelOptions {
  std::vector<std::string> voters{};    ///< hosts
  std::vector<std::string> replicas{};  ///< read-only
  std::string version = "24.6.0";
  bool shows_points = false;  ///< AtomPub is on, and any client has all rights
  std::chrono::milliseconds tick{500};
  std::chrono::milliseconds scavenge_least{2'000};
  std::chrono::milliseconds scavenge_most{8'000};
};

/// How a scavenge came to its end, as its node tells it.
struct ModelEnd {
  std::string result{};  ///< "Success", "Stopped", "Interrupted", "Errored"
  bool failed = false;   ///< by an error, whichever word the version has for it
};

/// What a node's disk holds; stays when its process ends.
struct ModelDatabase {
  std::size_t length = 0;  ///< entries of the cluster's log that are here
  std::optional<scavenge::Checkpoint> checkpoint{};
  std::chrono::milliseconds work_left{0};  ///< of the unfinished scavenge
  std::map<std::int64_t, int> finished{};  ///< point -> how often it came to its end
  std::int64_t bytes = 1'000'000;
};

/// One scavenge that runs, in the memory of its node.
struct ModelScavenge {
  std::string id{};
  bool sync_only = false;
  bool foreign = false;  ///< not started by the house's programs
  bool stopping = false;
  bool stopped_by_hand = false;
  bool has_point = false;
  bool nothing_to_do = false;
  std::int64_t wants_point = -1;  ///< number of the point it wrote or is to write; -1: none
  bool written = false;           ///< that point is in the leader's log
  std::chrono::milliseconds age{0};
};

class ModelCluster;

/// A node's process: it speaks the node interface and shows its agent what a look at its files
/// would. Owned by its process; the cluster sees it go.
class ModelNode final : public node::NodeInspection {
 public:
  ModelNode(ModelCluster& cluster, std::size_t index);
  ~ModelNode() override;
  ModelNode(const ModelNode&) = delete;
  ModelNode& operator=(const ModelNode&) = delete;

  /// Must not be called after the node is gone.
  http::Handler handler();

  [[nodiscard]] std::string instance_id() const override { return instance_; }
  [[nodiscard]] api::NodeState state() const override { return state_; }
  [[nodiscard]] node::NodePositions positions() const override;
  [[nodiscard]] std::string database_id() const override;
  [[nodiscard]] node::ChunkInventory chunks() const override;
  [[nodiscard]] const Path& database_directory() const override;
  [[nodiscard]] const Path& index_directory() const override;
  [[nodiscard]] Result<std::vector<streams::ScavengePoint>> scavenge_points() const override;
  [[nodiscard]] std::optional<api::UnfinishedScavenge> unfinished_scavenge() const override;
  [[nodiscard]] std::optional<api::ScavengePoint> last_finished_point() const override;
  [[nodiscard]] std::optional<api::RunningScavenge> running_scavenge() const override;
  [[nodiscard]] Result<std::shared_ptr<node::DigestWork>> make_digest_job(
      std::int64_t point_number, const streams::DigestOptions& options) const override;

  [[nodiscard]] const std::optional<ModelScavenge>& running() const { return running_; }
  [[nodiscard]] std::int32_t priority() const { return priority_; }

 private:
  friend class ModelCluster;
  struct Seen {  ///< another member, as it was last heard of
    std::string instance{};
    api::NodeState state = api::NodeState::kUnknown;
    bool alive = false;
    std::int64_t position = 0;
    std::int32_t epoch = 0;
    std::int32_t priority = 0;
  };
  net::awaitable<http::Response> answer(http::Request request);
  net::awaitable<http::Response> stop(std::string id);
  http::Response gossip();
  http::Response history(std::string_view id, std::size_t count) const;
  http::Response newest_point() const;
  http::Response start(const http::Target& target);
  [[nodiscard]] std::int64_t position() const;
  [[nodiscard]] Seen as_seen() const;
  void end_run(std::string_view result, std::string error);
  void tell(api::ScavengeEvent event);
  /// Of a former process at this address, by the log.
  void close_dead_runs();

  ModelCluster& cluster_;
  std::size_t index_;
  std::string instance_;
  api::NodeState state_ = api::NodeState::kInitializing;
  std::int32_t epoch_ = 0;
  std::int32_t priority_ = 0;
  std::optional<ModelScavenge> running_;
  std::vector<Seen> seen_;
  std::vector<api::ScavengeEvent> outbox_;
  bool looked_for_dead_runs_ = false;
  std::chrono::milliseconds without_leader_{0};
  std::string gossip_;  ///< rendered; empty: to be rendered anew
};

/// The nodes of one cluster: who leads, what is in the log, how far each one has it. Looks at all
/// machines at once, which no node can: an election takes place where a majority is connected. Time
/// goes in ticks. Not safe from several threads.
class ModelCluster {
 public:
  ModelCluster(testing::SimWorld& world, ModelOptions options, std::uint64_t seed);

  /// From now on it goes by ticks.
  void begin();
  /// A new process; the host has just been booted. The caller keeps it in that process.
  std::shared_ptr<ModelNode> boot(std::string_view host);
  /// The machine lost its power: what was not synced is gone. After the process is gone.
  void power_cut(std::string_view host);

  // --- what others do to it
  /// An operator starts one by hand. Empty: it was refused.
  std::string start_by_hand(std::string_view host, bool sync_only);
  bool stop_by_hand(std::string_view host);
  /// The scavenge at work there ends with an error.
  bool fail_scavenge(std::string_view host);
  /// An election without any need.
  bool elect_out_of_turn();
  /// `host` stops following for a while, its log stands still.
  void hold_up(std::string_view host, std::chrono::milliseconds duration);
  /// From the next start on another machine is at this address, with a database of its own, which
  /// leads itself; or the old one again. While its process goes down.
  void replace(std::string_view host, bool by_stranger);
  /// While it is down the others go on calling it alive.
  void haunt(std::string_view host, bool haunts) { find(host)->ghost = haunts; }
  /// The next resignations that take effect: who resigned wins again.
  void let_resigner_win(int times) { resigner_wins_ = times; }
  /// Of the next resignation: no node leads for so long after it.
  void slow_election(std::chrono::milliseconds duration) { slow_election_ = duration; }

  // --- what is
  [[nodiscard]] ModelNode* node(std::string_view host) const;
  [[nodiscard]] const ModelDatabase& database(std::string_view host) const;
  /// Steps of digests that its agent has made so far.
  [[nodiscard]] int digest_steps(std::string_view host) const;
  /// The host that leads by right; empty during an election.
  [[nodiscard]] std::string leader() const;
  [[nodiscard]] std::int32_t epoch() const { return epoch_; }
  [[nodiscard]] std::vector<std::string> hosts() const;
  [[nodiscard]] bool is_voter(std::string_view host) const;
  /// By the gossip of a node that is up.
  [[nodiscard]] bool called_alive(std::string_view host) const;
  /// Number of the newest scavenge point that this node can see; -1: none.
  [[nodiscard]] std::int64_t newest_point(std::string_view host) const;
  [[nodiscard]] std::size_t voters() const { return options_.voters.size(); }
  [[nodiscard]] std::int64_t points() const;
  [[nodiscard]] bool settled() const;
  /// When this voter was last seen up and in a settled state.
  [[nodiscard]] Monotonic last_settled(std::string_view host) const;
  std::uint64_t leader_changes = 0;

  /// A request has begun or queried something; before its answer.
  std::function<void(std::string_view host, bool foreign)> on_start;
  std::function<void(std::string_view host, std::int64_t point)> on_finished;
  std::function<void(std::string_view host)> on_resign;
  /// A start was refused because `running` is at work.
  std::function<void(std::string_view host, const ModelScavenge& running)> on_refused_start;
  std::function<void(std::string_view host, const ModelScavenge&, const ModelEnd&)> on_end;
  std::function<void(std::string_view host, std::int64_t point, bool foreign)> on_point_written;
  /// Its process is gone, with all that was at work in it.
  std::function<void(std::string_view host, const std::optional<ModelScavenge>&)> on_gone;
  std::function<void(std::string_view host)> on_boot;
  /// `again`: it led before, and had resigned.
  std::function<void(std::string_view host, bool again)> on_elected;

 private:
  friend class ModelNode;
  struct Entry {
    std::optional<streams::ScavengePoint> point{};
    std::optional<api::ScavengeEvent> event{};
  };
  struct Member {
    std::string host;
    bool votes = true;
    ModelDatabase disk{};
    ModelDatabase synced{};
    bool stranger = false;
    bool ghost = false;
    std::string other_database{};  ///< the stranger's
    ModelNode* process = nullptr;
    Monotonic held_up_until{};
    Monotonic last_settled{};
    std::shared_ptr<int> digest_steps = std::make_shared<int>(0);
  };
  void tick();
  void check_leader();
  void elect();
  void follow();
  void replicate();
  void take_outboxes();
  void scavenge(Member& member);
  void spread_gossip();
  [[nodiscard]] bool connected(std::size_t a, std::size_t b) const;
  [[nodiscard]] std::size_t reach(std::size_t from) const;  ///< voters, itself included
  [[nodiscard]] std::size_t quorum() const { return options_.voters.size() / 2 + 1; }
  [[nodiscard]] std::size_t visible(const Member& member) const;
  [[nodiscard]] std::optional<streams::ScavengePoint> latest_point(std::size_t length) const;
  Member* find(std::string_view host);
  [[nodiscard]] const Member* find(std::string_view host) const;

  testing::SimWorld& world_;
  ModelOptions options_;
  SeededRandom random_;
  std::string database_;
  std::vector<Member> members_;
  std::vector<Entry> log_;
  std::size_t committed_ = 0;
  std::optional<std::size_t> leader_;
  std::string leader_instance_;
  std::int32_t epoch_ = 0;
  std::string epoch_id_;
  std::chrono::milliseconds election_{0};  ///< still to go; without a leader
  std::chrono::milliseconds lonely_{0};    ///< the leader without a majority
  int more_elections_ = 0;
  std::string resigned_;  ///< instance that has resigned, until a node leads
  int resigner_wins_ = 0;
  std::chrono::milliseconds slow_election_{0};
  std::uint64_t ticks_ = 0;
};

}  // namespace verger::sim
