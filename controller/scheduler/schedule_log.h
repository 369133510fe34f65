#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "controller/journal/journal.h"
#include "engine/base/log.h"
#include "engine/base/result.h"

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

using ScheduleKey = std::pair<std::string, std::string>;  ///< policy, cluster

/// What became of the due times of each policy on each cluster, as journaled. What could not be
/// recorded has not changed the state, so the scheduler's next tick tries again.
class ScheduleLog {
 public:
  ScheduleLog(Journal& journal, ControllerEpoch epoch, Log& log)
      : journal_(journal), epoch_(epoch), log_(log) {}

  /// Replays the journal.
  Result<void> load();
  /// Empty where nothing was recorded.
  [[nodiscard]] const ScheduleState& state(const ScheduleKey& key) const;

  /// The due time needs nothing more. `data`: the event's members besides `due`. False: it could
  /// not be recorded.
  bool settle(const ScheduleKey& key, Ticks due, nlohmann::json data);
  // A reason is recorded once, until it changes.
  void set_waiting(const ScheduleKey& key, Ticks due, const std::string& reason);
  void set_late(const ScheduleKey& key, std::optional<Ticks> deadline, const std::string& reason);
  void set_too_old(const ScheduleKey& key, Ticks since, const std::string& reason);

 private:
  Result<void> record(const ScheduleKey& key, std::string_view type, const nlohmann::json& data);

  Journal& journal_;
  ControllerEpoch epoch_;
  Log& log_;
  std::map<ScheduleKey, ScheduleState> states_;
};

}  // namespace verger::controller
