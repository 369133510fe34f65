#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/scavenge/scavenge_run.h"
#include "nodeagent/api/agent.h"
#include "nodeagent/api/node.h"
#include "nodeagent/http/message.h"
#include "nodeagent/node/detail/node_context.h"
#include "nodeagent/node/detail/scavenge_history.h"
#include "nodeagent/node/job_runner.h"
#include "nodeagent/node/write_service.h"

namespace verger::node {

/// The parameters of POST /admin/scavenge (node-interface.md §1.4).
struct ScavengeRequest {
  int threads = 1;
  std::int32_t threshold = 0;  ///< of the new point: chunks of a greater weight are rewritten
  int throttle_percent = 100;  ///< share of the time in which it works
  bool sync_only = false;      ///< makes no new point
};

/// Runs scavenges on this node's files, one at a time, and reports them in `$scavenges` and
/// `$scavenges-<id>` (node-interface.md §6.1).
class Scavenger {
 public:
  Scavenger(NodeContext& context, WriteFunction write);
  ~Scavenger();
  Scavenger(const Scavenger&) = delete;
  Scavenger& operator=(const Scavenger&) = delete;

  /// The new run's id. Error: kConflict while one runs, or a redaction holds the chunk lock.
  Result<std::string> start(ScavengeRequest request);
  /// Empty when idle.
  [[nodiscard]] const std::string& current() const { return current_; }
  /// Has the run stop and returns once it has ended: its id, or nullopt when `id` ("current",
  /// or exactly the running one's) is not running.
  static net::awaitable<std::optional<std::string>> stop(std::shared_ptr<Scavenger> scavenger,
                                                         std::string id);
  void request_stop();
  /// The node is gone: forgets the run, whose coroutines keep what they need.
  void abandon();
  /// On the first Leader or Follower: completes runs a former process left open.
  void state_changed(api::NodeState state);

  [[nodiscard]] std::optional<api::UnfinishedScavenge> unfinished() const;
  [[nodiscard]] std::optional<api::ScavengePoint> last_finished() const;
  [[nodiscard]] std::optional<api::RunningScavenge> running() const;

 private:
  struct Run;

  static net::awaitable<void> run(std::shared_ptr<Scavenger> scavenger, std::shared_ptr<Run> run);
  static net::awaitable<Result<void>> work(std::shared_ptr<Scavenger> scavenger,
                                           std::shared_ptr<Run> run);
  static net::awaitable<Result<scavenge::ScavengePoint>> create_point(
      std::shared_ptr<Scavenger> scavenger, std::shared_ptr<Run> run,
      std::int64_t expected_version);
  static net::awaitable<Result<void>> end_of_chunk_committed(std::shared_ptr<Scavenger> scavenger,
                                                             std::shared_ptr<Run> run,
                                                             LogPosition point);
  void read_checkpoint();

  NodeContext& context_;
  WriteFunction write_;
  ScavengeHistory history_;
  std::string current_;
  std::shared_ptr<Run> run_;
  std::optional<scavenge::Checkpoint> checkpoint_;
  bool looked_for_dead_runs_ = false;
};

/// As GET /metrics names it, for example "Chunk execution Phase".
std::string_view phase_name(scavenge::Stage stage);

}  // namespace verger::node
