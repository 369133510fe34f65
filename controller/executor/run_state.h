#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "controller/executor/json_object.h"
#include "controller/executor/step_time.h"
#include "controller/journal/journal.h"
#include "engine/base/result.h"
#include "planner/plan.h"

namespace verger::controller {

/// planned -> running <-> waiting; running -> pausing -> paused -> running;
/// any but the last four -> cancelling -> cancelled; running -> done | done-with-differences |
/// failed. Done with differences: every step was done, and what was compared afterwards is not as
/// it should be; no success.
enum class RunStatus : std::uint8_t {
  kPlanned,
  kRunning,
  kPausing,
  kPaused,
  kWaiting,
  kCancelling,
  kDone,
  kDoneWithDifferences,
  kFailed,
  kCancelled,
};
/// pending -> waiting -> acting <-> unknown -> done | failed; done -> undone; not done -> skipped.
enum class StepStatus : std::uint8_t {
  kPending,
  kWaiting,
  kActing,
  kUnknown,
  kDone,
  kFailed,
  kSkipped,
  kUndone
};
std::string_view to_string(RunStatus status);
std::string_view to_string(StepStatus status);
[[nodiscard]] constexpr bool has_ended(RunStatus status) {
  return status == RunStatus::kDone || status == RunStatus::kDoneWithDifferences ||
         status == RunStatus::kFailed || status == RunStatus::kCancelled;
}

/// What a pause does to what runs.
enum class PauseMode : std::uint8_t {
  kPolicy,  ///< as the plan's policy says
  kDrain,   ///< it continues to its end
  kNow,     ///< all that can be stopped is stopped
};
std::string_view to_string(PauseMode mode);
std::optional<PauseMode> parse_pause_mode(std::string_view text);

/// What an acting step's rate is worked out from: since when, and from how much on, it has been in
/// its present phase, and when it last reported.
struct PhaseSeen {
  std::string phase;
  std::int64_t first_done = -1;  ///< in the unit of the step's progress
  std::int64_t done = -1;
  Ticks since;
  Ticks at;
  /// nullopt: too early to tell.
  [[nodiscard]] std::optional<double> units_per_hour() const;
};

/// How the undo of a step ended.
struct UndoEnd {
  bool undone = false;  ///< seen so at its node
  std::string reason;   ///< why it is not
  std::string command;  ///< with which a person does it; empty: none is known
  Ticks at;
};

/// What the events of one step add up to. Members of what it left have the names of today also
/// where a former version journaled them.
struct StepState {
  StepStatus status = StepStatus::kPending;
  std::int32_t attempt = 0;  ///< starts that were intended
  std::int32_t attempts_before_rollback =
      0;                  ///< of these, before a rollback: they do not count for the limit
  std::string operation;  ///< id of the newest intent
  JsonObject memo;        ///< what the step noted, before it acted and since
  JsonObject result;      ///< of a done step
  JsonObject progress;    ///< of an acting step
  PhaseSeen phase;        ///< of the same
  std::string reason;     ///< why it waits, is unknown, failed or was skipped
  std::string outcomes =
      "[]";                  ///< JSON: how earlier attempts ended: {attempt, outcome, reason, at}
  std::string gates = "[]";  ///< JSON: what a waiting step waits for; since when, for each
  /// JSON: gates that were open at the newest intent since they could not be looked at.
  std::string not_seen = "[]";
  bool acted = false;         ///< the newest intent was answered
  bool interrupting = false;  ///< it was requested to stop
  bool undoing = false;       ///< its undo is intended and not yet seen done
  bool end_unseen = false;    ///< its node was skipped before what it began was seen to end
  std::string undo_operation;
  std::int32_t undo_attempt = 0;
  std::optional<UndoEnd> undo_end;  ///< of the newest undo of its stage
  /// How long it has been seen at work, over all attempts; its present one not among them.
  std::int64_t active_ms = 0;
  /// Since when it has not fitted into what is left of its hours.
  std::optional<Ticks> does_not_fit_since;
  StepTime time;
  std::optional<Ticks> since;  ///< start of the present state
  std::optional<Ticks> started;
  std::optional<Ticks> ended;
};

/// An attempt before the newest one may have done a part of the work, which the result does not
/// count.
bool was_interrupted(const StepState& step);

/// pending -> running -> done or failed; running -> undoing -> undone, which is pending again where
/// it was rolled back.
enum class StageStatus : std::uint8_t { kPending, kRunning, kDone, kFailed, kUndoing, kUndone };
std::string_view to_string(StageStatus status);

struct StageState {
  StageStatus status = StageStatus::kPending;
  std::optional<Ticks> started;
  std::int32_t deferrals = 0;  ///< how often its turn was, because its node led the cluster
  bool rolling_back = false;   ///< its undo is no failure: it will be done again
};

/// Leadership went from one node to another while the run was under way.
struct LeaderMove {
  std::string from;  ///< names of nodes
  std::string to;
  bool planned = false;  ///< by a step of this run
  Ticks at;
};

/// Key of the alert that a run could not be resumed with its cluster.
inline constexpr std::string_view kResumeAlert = "/resume";
/// What the key of an alert begins with, after the "/", that a node's agent has given up starting
/// its server; its name follows.
inline constexpr std::string_view kStaysDownAlert = "server-stays-down-";

/// Something a person should see to.
struct RunAlert {
  std::string key;   ///< "<step>/<what>": while one with this key is open, no other is raised
  std::string step;  ///< empty: the run
  std::string reason;
  Ticks at;
  std::optional<Ticks> cleared_at;  ///< what it reported is over; nullopt: it is not
};

/// What the names of those values begin with that lists and metrics have of a run that has ended
/// (RunSummary::kept).
inline constexpr std::string_view kKeptValues = "kept/";
/// The one that says how new what the run leaves is, {"at": ISO-8601, ...}: of a cluster's runs of
/// an operation that were done, the newest counts (planner::Operation::max_age_ms).
inline constexpr std::string_view kResultValue = "kept/result";

/// What the events of one run add up to.
struct RunState {
  std::string id;
  std::string cluster;
  std::string started_by;
  std::shared_ptr<const planner::Plan> plan;
  RunStatus status = RunStatus::kPlanned;
  std::string reason;  ///< why it waits, paused, failed
  PauseMode pause_mode = PauseMode::kPolicy;
  bool paused_with_cluster = false;  ///< it resumes with the cluster
  bool ignores_hours = false;        ///< an operator requested that: no window holds it back
  std::int64_t paused_ms = 0;        ///< of pauses that are over
  std::optional<Ticks> paused_since;
  std::optional<Ticks> last_step_end;  ///< or the run's start: since when the next one is prepared
  std::map<std::string, StepState> steps;
  std::map<std::string, StageState> stages;
  /// Stages in the order of their turns; a stage that was put off is at the end again.
  std::vector<std::string> order;
  std::map<std::string, std::string> values;  ///< JSON texts that steps left for later ones
  std::set<std::string> skipped_nodes;
  /// Of these, the ones beside which the run continues even if something runs there: an operator
  /// decided so.
  std::set<std::string> disregarded_nodes;
  std::vector<LeaderMove> moves;
  std::vector<RunAlert> alerts;  ///< oldest first
  std::string leader;            ///< name of the node that was last seen settled as leader
  Revision revision;
  Ticks started_at;
  std::optional<Ticks> ended_at;

  [[nodiscard]] std::int32_t planned_moves() const;
  [[nodiscard]] bool has_open_alert(std::string_view key) const;
  [[nodiscard]] std::size_t open_alerts() const;
};

/// What the step is at, for its StepTime.
StepPart part_of(const StepState& step);

/// Folds one event in. Errors: kCorruption (an event that no run of ours writes).
Result<void> apply(RunState& state, const JournalEvent& event);
/// The same for the writer of the event: `data` is what its text says.
Result<void> apply(RunState& state, const JournalEvent& event, const nlohmann::json& data);
/// Folds in the first event, which holds `plan`, for its writer.
void begin(RunState& state, const JournalEvent& event, std::shared_ptr<const planner::Plan> plan,
           std::string by);

}  // namespace verger::controller
