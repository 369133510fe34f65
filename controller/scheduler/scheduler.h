#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "controller/executor/executor.h"
#include "controller/scheduler/notifier.h"
#include "controller/scheduler/policy_book.h"
#include "controller/scheduler/schedule_log.h"

namespace verger::controller {

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
