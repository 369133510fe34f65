#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/executor/executor.h"
#include "controller/scheduler/due.h"
#include "controller/scheduler/notifier.h"
#include "controller/scheduler/policy_book.h"

namespace verger::controller {

/// Types of the events in the streams "schedule/<policy>/<cluster>".
namespace events {
/// {due, outcome: started|needs-approval|not-needed|dropped, run, plan, reason}: the due time is
/// settled.
inline constexpr std::string_view kScheduleSettled = "schedule-settled";
/// {due, reason}: due, and cannot be started yet; again when the reason changes.
inline constexpr std::string_view kScheduleWaiting = "schedule-waiting";
/// {deadline, reason}: the next run that can start starts after the deadline of what needs it;
/// again when the reason changes. An empty reason: no longer.
inline constexpr std::string_view kScheduleLate = "schedule-late";
/// {since, reason}: the newest result of the policy's runs is older than it allows; again when the
/// reason changes. An empty reason: no longer.
inline constexpr std::string_view kScheduleTooOld = "schedule-too-old";
}  // namespace events

/// What became of a policy's due times on one cluster.
struct ScheduleState {
  std::optional<Ticks> settled;  ///< the newest due time that needs nothing more
  std::string outcome;
  std::string run;
  std::string plan;
  std::string reason;
  std::string waiting;  ///< why the present due time is not started; empty: none is due
  std::string late;     ///< why the next run comes after the deadline; empty: it does not
  std::string too_old;  ///< why the newest result is older than allowed; empty: it is not
  Revision revision;
};

struct SchedulerParts {
  net::any_io_executor executor;
  Journal& journal;
  Registry& registry;
  PolicyBook& book;
  Executor& runs;
  Network network;
  ControllerEpoch epoch;
  std::chrono::milliseconds tick{1'000};
  Notifier* notifier = nullptr;  ///< looks around with each tick
  /// Clusters that are planned for, or whose pause is ended, at the same time.
  std::size_t tasks_at_once = 16;
  /// What takes longer has its place taken, and is tried again.
  std::chrono::seconds task_deadline{120};
};

/// Starts what is due: due -> snapshot -> plan -> apply, inside the windows. Ends cluster pauses
/// whose time is over. All on one executor; nothing of it is safe from another thread.
///
/// No cluster waits for another: each due operation is a task of its own, of which a limited number
/// run at a time and each cluster has one. One that hangs past its deadline makes room for others.
/// An operation that was due in time does not become late by waiting for its turn.
///
/// Each due time is settled by one event. A crash between a run's start and that event is made good
/// after the restart: the run is found by its policy and its time.
class Scheduler {
 public:
  explicit Scheduler(SchedulerParts parts);
  ~Scheduler();

  /// Replays the journal.
  Result<void> load();
  /// Begins to look each tick.
  void start();
  net::awaitable<void> stop();

  [[nodiscard]] ScheduleState state(std::string_view policy, std::string_view cluster) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::controller
