#pragma once

#include <optional>
#include <string>

#include "controller/scheduler/schedule_policy.h"
#include "planner/operation.h"

namespace verger::controller {

/// Later than this a due time counts as missed.
inline constexpr std::chrono::minutes kDueGrace{5};

/// Why a due operation cannot be started now, though the windows are open.
struct DueBlock {
  std::string reason;            ///< empty: nothing is in the way
  bool own_run_at_work = false;  ///< the same policy's run has not ended
  bool noticed_in_time = false;  ///< it was to start when it was due, and waits for its turn since
};

struct DueDecision {
  enum class Action : std::uint8_t {
    kNothing,  ///< nothing is due
    kStart,
    kWait,  ///< due; it will be looked at again at `wake`, or when the block is gone
    kDrop,  ///< not done, for `reason`; the due time is settled
  };
  Action action = Action::kNothing;
  Instant due;                  ///< the newest due time; older ones are settled with it
  std::optional<Instant> wake;  ///< nullopt: never by itself
  std::string reason;
};

/// What is to be done about a policy's due times after `handled_up_to`. Pure: the same arguments
/// give the same decision. `event`: something happened then that makes a run due beside those of
/// the schedule; it is caught up whatever the policy says of its due times.
DueDecision decide_due(const SchedulePolicy& policy, const WindowRules& rules,
                       Instant handled_up_to, Instant now, const DueBlock& block,
                       std::optional<Instant> event = std::nullopt);

/// Why no run of the policy starts between `need.needed_at` and `need.deadline`, as far as due
/// times and windows decide; empty: one does, or there is no deadline. Pure.
std::string why_too_late(const SchedulePolicy& policy, const WindowRules& rules,
                         const planner::Need& need, Instant now);

}  // namespace verger::controller
