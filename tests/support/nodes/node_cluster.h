#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/log.h"
#include "engine/base/slow_file_system.h"
#include "nodeagent/node/node.h"
#include "tests/support/cluster/sim_world.h"

namespace verger::testing {

/// Writes to stderr with the world's time when the environment has VERGER_TEST_LOG; else nothing.
class SimLog final : public Log {
 public:
  SimLog(SimWorld& world, std::string name);
  void write(LogLevel level, std::string_view message, std::span<const LogField> fields) override;

 private:
  SimWorld& world_;
  std::string name_;
  bool on_;
};

struct NodeClusterOptions {
  std::size_t voters = 3;
  std::size_t replicas = 0;
  /// The nodes say that they are reached over TLS; the simulated network has none.
  bool tls = false;
  /// Database, seeds, cluster size and replica flag are filled in.
  node::NodeOptions node;
  /// Of long jobs: what a step does, and how much virtual time it takes.
  Budget job_budget{256};
  std::chrono::milliseconds job_pace{1};

  NodeClusterOptions();
};

/// Embedded nodes n1, n2, ... on hosts of a world, and a host "client" that talks to them.
class NodeCluster {
 public:
  static constexpr std::uint16_t kHttpPort = 2113;
  static constexpr std::uint16_t kReplicationPort = 1112;

  explicit NodeCluster(SimWorld& world, NodeClusterOptions options = {});
  /// Ends the processes: what is left of the nodes uses what this object owns.
  ~NodeCluster();
  NodeCluster(const NodeCluster&) = delete;
  NodeCluster& operator=(const NodeCluster&) = delete;

  /// Starts the process of node `i`; the error of opening, if any.
  Result<void> boot(std::size_t i);
  void boot_all();
  void crash(std::size_t i, bool power = true);
  /// From now on each sync of node `i` keeps it busy for up to so long; 0: for no time.
  void slow_disk(std::size_t i, std::chrono::milliseconds longest_sync);
  /// Syncs that took time so far.
  [[nodiscard]] std::uint64_t slow_syncs() const { return slow_syncs_; }
  SimHost& host(std::size_t i);
  /// nullptr while it is down, or after its disk failed.
  node::Node* node(std::size_t i);
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  node::NodeOptions& options(std::size_t i) { return slots_[i].options; }
  /// How often the process of node `i` has ended by itself.
  [[nodiscard]] int times_ended(std::size_t i) const { return slots_[i].ended; }

  std::optional<std::size_t> leader();
  /// One leader, and all others that are up follow it.
  bool settled();
  bool run_until_settled(std::chrono::milliseconds limit = std::chrono::seconds(5));
  /// All that are up have the same log, all of it committed.
  bool level();
  bool run_until_level(std::chrono::milliseconds limit = std::chrono::seconds(10));

  /// Sends from the client host and runs the world until there is an answer.
  Result<http::Response> request(std::size_t i, http::Request request,
                                 std::chrono::milliseconds deadline = std::chrono::seconds(10));
  Result<http::Response> get(std::size_t i, const std::string& target);
  Result<http::Response> post(std::size_t i, const std::string& target,
                              const std::string& body = {});
  /// One event with JSON data; the answer's status, 0 when there was none.
  int append(std::size_t i, const std::string& stream, const std::string& data);
  /// Something to scavenge, written by the leader: streams s0, s1, ... that keep their last two of
  /// `events` events of some 3,000 bytes. False when a write was not answered 201.
  bool fill_with_limited_streams(int streams, int events);

  SimWorld& world;

 private:
  struct Slot {
    node::NodeOptions options;
    std::unique_ptr<SimLog> log;
    std::chrono::milliseconds longest_sync{0};
    std::unique_ptr<SlowFileSystem> disk;
    std::unique_ptr<SeededRandom> random;
    std::unique_ptr<node::JobRunner> jobs;
    std::weak_ptr<node::Node> node;
    bool failed = false;
    int ended = 0;
  };
  void before_sync(std::size_t i);

  std::uint64_t slow_syncs_ = 0;
  bool tls_;
  Budget job_budget_;
  std::chrono::milliseconds job_pace_;
  std::vector<Slot> slots_;
  std::vector<http::Endpoint> endpoints_;
};

}  // namespace verger::testing
