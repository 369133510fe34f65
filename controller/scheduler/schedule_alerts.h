#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controller/executor/executor.h"
#include "controller/scheduler/policy_book.h"
#include "controller/scheduler/schedule_log.h"
#include "engine/base/clock.h"

namespace verger::controller {

/// The alerts about a policy on a cluster that no run can raise: the next run comes too late for
/// what needs it, and the newest result is too old. Recorded in the schedule's log when they begin,
/// change and end.
class ScheduleAlerts {
 public:
  ScheduleAlerts(Executor& runs, const PolicyBook& book, Clock& clock, ScheduleLog& log)
      : runs_(runs), book_(book), clock_(clock), log_(log) {}

  /// Whether what the policy's runs are for ends before the next of them can start.
  void check_lateness(const StoredPolicy& stored, const ClusterConfig& cluster);
  /// Whether the newest result is older than the policy allows: of all runs of its operation on the
  /// cluster, also of those that an operator started.
  void check_age(const StoredPolicy& stored, const ClusterConfig& cluster);

 private:
  [[nodiscard]] std::optional<Ticks> newest_result(std::string_view operation,
                                                   const std::string& cluster) const;

  Executor& runs_;
  const PolicyBook& book_;
  Clock& clock_;
  ScheduleLog& log_;
};

}  // namespace verger::controller
