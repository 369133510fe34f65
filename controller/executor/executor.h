#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "controller/cluster/observer.h"
#include "controller/cluster/registry.h"
#include "controller/executor/gate_board.h"
#include "controller/executor/plan_book.h"
#include "controller/executor/run_snapshot.h"
#include "controller/executor/run_state.h"
#include "controller/executor/step_kind.h"
#include "controller/executor/working_hours.h"
#include "controller/journal/journal.h"
#include "engine/base/random.h"
#include "planner/make_plan.h"

namespace verger::controller {

/// Times are of the monotonic clock.
struct ExecutorOptions {
  /// Between two looks at a node that acts, or at a gate that is closed.
  std::chrono::milliseconds poll_interval{1'000};
  /// Between looks at what has just begun; they become rarer as it lasts, down to the above.
  std::chrono::milliseconds shortest_poll{100};
  /// How long an agent keeps a permit without hearing again.
  std::chrono::milliseconds permit_valid_for{60'000};
  /// At most one progress event per step in this time.
  std::chrono::milliseconds progress_interval{5'000};
  /// A start reads fewer events than this of each run that has not ended; 1,000 take some 10 ms.
  std::int64_t events_between_snapshots = 1'000;
  /// With another controller: clusters with nodes that have no agent are refused.
  bool shared_journal = false;
};

/// Everything it stands on; all of it outlives the executor's coroutines, or is never touched again
/// once `executor` has stopped running them.
struct ExecutorParts {
  net::any_io_executor executor;
  Journal& journal;
  Registry& registry;
  Network network;
  Random& random;
  StepKinds& kinds;
  ControllerEpoch epoch;
  ExecutorOptions options = {};
  const WorkingHours* hours = nullptr;  ///< nullptr: always open
};

/// No plan was made, for all of these reasons.
struct PlanRefused {
  std::vector<planner::Refusal> refusals;
};

/// A stale plan: nothing was started.
struct StartRefused {
  Error error;
  std::vector<std::string> differences;  ///< of the basis, for people
};

/// Makes plans, runs them, replays them after a restart. All calls on the one executor; nothing of
/// it is safe from another thread.
///
/// Stopping: stop() ends all run coroutines at their next look around without changing any state:
/// the runs resume with the next start. Destroying the io_context in the middle is a crash, and as
/// safe: no destructor touches another part.
class Executor {
 public:
  explicit Executor(ExecutorParts parts);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Replays plans and runs from the journal and resumes those not ended: each intent without
  /// outcome is looked for at its node before anything else.
  Result<void> start();
  net::awaitable<void> stop();

  // --- plans
  /// Takes a snapshot and plans; a plan is journaled. Errors: kNotFound (cluster), the journal's.
  net::awaitable<Result<std::expected<StoredPlan, PlanRefused>>> make_plan(std::string cluster,
                                                                           planner::Policy policy,
                                                                           std::string by);
  /// As PlanBook has them.
  [[nodiscard]] Result<StoredPlan> find_plan(std::string_view hash) const;
  [[nodiscard]] std::vector<PlanSummary> plans(std::string_view cluster) const;
  net::awaitable<Result<planner::ClusterSnapshot>> observe(std::string cluster);

  // --- runs
  /// Takes a snapshot and starts the plan if its basis still holds. Errors: kNotFound, kConflict
  /// (stale, with the differences), kRefused (another run of this cluster, the cluster is paused).
  net::awaitable<std::expected<std::string, StartRefused>> apply(std::string hash, std::string by);
  [[nodiscard]] std::vector<std::shared_ptr<const RunSummary>> runs(
      std::string_view cluster) const;  ///< newest first; empty name: all
  /// Those not ended.
  [[nodiscard]] std::vector<std::shared_ptr<const RunState>> active_runs(
      std::string_view cluster) const;
  /// A unique prefix of 8 digits will do. Errors: kNotFound, kConflict (the prefix does not name
  /// one run); the journal's, which has the runs that ended.
  [[nodiscard]] Result<std::shared_ptr<const RunState>> find_run(std::string_view id) const;

  /// The gates of a run under way as this controller last evaluated them; nothing of any other run.
  [[nodiscard]] GateBoard gates(std::string_view id) const;

  /// Takes all looks at nodes, those of runs too.
  [[nodiscard]] Observer& observer();

  /// Of what the journal is about to lose: a run that has ended, a plan.
  void forget_run(std::string_view id);
  void forget_plan(std::string_view hash);

  /// Intents: journaled, then true at once; effects follow as events. Errors: kNotFound, kConflict
  /// (the run has ended, or is in a state where it makes no sense).
  Result<void> pause(std::string_view run, std::string by, std::string reason,
                     PauseMode mode = PauseMode::kPolicy);
  Result<void> cancel(std::string_view run, std::string by, std::string reason);
  /// How gently the run's jobs at agents work from now on, those under way too, instead of what its
  /// plan says. What a server itself does is not among them.
  Result<void> throttle(std::string_view run, std::string by, api::Throttle throttle);
  /// The run continues without the node, once nothing of it runs there; with `force` even if it
  /// does. Returns what the other nodes still wait for; empty: nothing.
  net::awaitable<Result<std::string>> skip_node(std::string run, std::string node, std::string by,
                                                std::string reason, bool force = false);
  /// Takes a fresh snapshot first; kConflict with what no longer holds.
  net::awaitable<Result<void>> resume(std::string run, std::string by);
  /// The same, and no window holds the run back from then on; also of one that is not paused.
  net::awaitable<Result<void>> resume_ignoring_hours(std::string run, std::string by,
                                                     std::string reason);

  // --- whole clusters
  /// Nothing new starts on it, and its run pauses with it; until a person resumes it, or `until`.
  /// Errors: kNotFound, the journal's.
  Result<void> pause_cluster(std::string_view cluster, std::string by, std::string reason,
                             PauseMode mode, std::optional<Ticks> until);
  /// Runs paused with it resume. Errors: kNotFound; kConflict: the cluster resumed, a run of it
  /// did not.
  net::awaitable<Result<void>> resume_cluster(std::string cluster, std::string by);
  /// True: the cluster is not paused, and a run that was paused with it is; resume_cluster() tries
  /// again.
  [[nodiscard]] bool has_run_to_resume(std::string_view cluster) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::controller
