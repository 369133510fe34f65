#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/cluster/own_queries.h"
#include "controller/executor/executor.h"
#include "controller/executor/gate_board.h"
#include "controller/executor/run_snapshot.h"
#include "nodeagent/http/task_count.h"

namespace verger::controller::detail {

/// Thrown in run coroutines: the executor stops, or a newer controller has taken over. Nothing is
/// recorded after it.
struct Stopped {};

/// Thrown when an event could not be journaled. The run starts over from what the journal holds,
/// as after a restart, once the journal works again.
struct JournalTrouble {
  Error error;
};

/// Wakes one sleeping coroutine of a run. Owned by the coroutine alone: it must go with its
/// executor, even while other objects live on.
struct Waker;

/// An event of a run that is to be journaled.
struct RunEvent {
  std::string type;
  nlohmann::json data;
};

struct Run {
  Run(Journal& journal, const std::string& id, ControllerEpoch epoch)
      : writer(journal, "run/" + id, epoch, Revision(0)) {}
  RunState state;
  StreamWriter writer;
  Revision snapshot_tried{0};  ///< the last revision at which a snapshot was to be kept
  std::vector<std::weak_ptr<Waker>> wakers;
  /// Of stages under way, on the monotonic clock; longer by each pause.
  std::map<std::string, Monotonic> deadlines;
  std::map<std::string, std::optional<Ticks>> deadline_of;  ///< which start of a stage it is for
  std::map<std::string, Monotonic> progress_reported;       ///< by step
  /// When each step took its present state, on the clock that does not jump.
  struct StateBegin {
    std::optional<Ticks> since;  ///< as journaled: shows whether this is still that state
    Monotonic at{};
  };
  std::map<std::string, StateBegin> state_began;
  struct ReasonBegin {
    std::string reason;
    Monotonic at{};
  };
  std::map<std::string, ReasonBegin> reason_began;  ///< by step
  /// Attempts of a step that failed; the next one waits longer each time.
  struct BackOff {
    int failures = 0;
    Monotonic until{};
  };
  std::map<std::string, BackOff> back_off;  ///< by step
  /// Of the gates that a step waits for, since when each has been closed; by step, then
  /// "gate:node".
  std::map<std::string, std::map<std::string, Monotonic>> closed_since;
  GateBoard gates;                                ///< as they were last evaluated
  std::set<std::string> watched;                  ///< steps that this process began or looked at
  std::map<std::string, std::string> logged;      ///< by what it is about: what was logged last
  std::map<std::string, Monotonic> silent_since;  ///< by node
  bool in_trouble = false;                        ///< an event could not be journaled
  bool group_failed = false;                      ///< steps beside it must not start
  /// Steps that are being driven, and their nodes: an undo of another node does not wait for them.
  std::map<std::string, std::string> driven;

  Monotonic deadlines_stopped_until{};  ///< end of the last time in which none ran

  /// Lets all sleeping coroutines of the run look around now.
  void wake();
  /// No deadline runs from `begin` to `end`: the run was paused, or its hours closed. Each of
  /// several steps that waited may say so; the time counts once.
  void stop_deadlines(Monotonic begin, Monotonic end);
};

/// What the executor and its run coroutines share. The coroutines keep it alive.
struct Core {
  explicit Core(ExecutorParts p)
      : parts(std::move(p)),
        observer(parts.network),
        running(parts.executor),
        plans(parts.journal, parts.epoch, parts.network.log) {}
  ExecutorParts parts;
  Observer observer;
  bool stopping = false;
  http::TaskCount running;                                        ///< run coroutines
  std::map<std::string, std::shared_ptr<Run>, std::less<>> runs;  ///< those not ended
  std::map<std::string, std::shared_ptr<const RunSummary>, std::less<>> ended;
  PlanBook plans;
  std::shared_ptr<OwnQueries> own_queries = std::make_shared<OwnQueries>();

  /// Journals and folds in. Errors: the journal's; kRefused also sets `stopping`.
  Result<void> record(Run& run, std::vector<RunEvent> events);
  /// The same of the first event.
  Result<void> record_start(Run& run, std::shared_ptr<const planner::Plan> plan, std::string by);
  /// The run's state as the journal has it, into a fresh Run's members.
  Result<void> reload(Run& run);
  /// Lets the journal keep what the run's events add up to now. A failure is logged: it costs time
  /// at the next start, no more.
  void keep_snapshot(Run& run);

 private:
  Result<std::vector<JournalEvent>> write(Run& run, std::vector<NewEvent> events);
};

/// Drives a run to its end, or until the executor stops. Never throws.
net::awaitable<void> drive_run(std::shared_ptr<Core> core, std::shared_ptr<Run> run);

}  // namespace verger::controller::detail
