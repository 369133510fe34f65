#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "nodeagent/api/json_view.h"
#include "tests/simulation/control/operation_fates.h"
#include "tests/simulation/full/faults.h"

namespace verger::sim {

/// The rows of docs/tournament.md that a run can meet. One is met when it was so at the nodes and
/// the journal says it; that it says what was not so, or acts where it must not, is a violation.
namespace row {
inline constexpr std::string_view kDeadInGossip = "dead node still in gossip";
inline constexpr std::string_view kDiesBeforeAct = "node dies between gate and act";
inline constexpr std::string_view kErrored = "scavenge ends Errored";
inline constexpr std::string_view kErroredAsInterrupted = "scavenge ends Interrupted by an error";
inline constexpr std::string_view kStoppedByHand = "scavenge stopped by hand";
inline constexpr std::string_view kForeign = "another client's scavenge is running";
inline constexpr std::string_view kAdopted = "another client's scavenge is adopted";
inline constexpr std::string_view kAdoptedEnds = "an adopted scavenge ends early";
inline constexpr std::string_view kNodeRestarts = "node restarts mid-scavenge";
inline constexpr std::string_view kReplaced = "node replaced mid-cycle";
inline constexpr std::string_view kDownForDays = "node down for days mid-scavenge";
inline constexpr std::string_view kPausedOverDeadNode = "pause while that node is down";
inline constexpr std::string_view kDueWhileDown = "due while the controller is down";
inline constexpr std::string_view kLongCycle = "cycle longer than its period";
inline constexpr std::string_view kWinsAgain = "resigned leader wins again";
inline constexpr std::string_view kLeaderCrashes = "leader crashes in resigning";
inline constexpr std::string_view kNoNewLeader = "no new leader within the deadline";
inline constexpr std::string_view kReplyLost = "reply lost after a point was written";
inline constexpr std::string_view kMissesPoint = "second node misses the point";
inline constexpr std::string_view kControllerKilled = "controller killed between act and end";
inline constexpr std::string_view kTwoControllers = "two controllers";
inline constexpr std::string_view kDiskFills = "disk fills during execution";
inline constexpr std::string_view kClockOff = "a node's clock jumps";
inline constexpr std::string_view kControllerClock = "the controller's clock jumps";
inline constexpr std::string_view kDaylightSaving = "DST repeats the due hour";
inline constexpr std::string_view kPolicyChanged = "policy changed mid-run";
inline constexpr std::string_view kCertificate = "certificate expires mid-run";
inline constexpr std::string_view kAgentTooOld = "agent lies: too old a version";
inline constexpr std::string_view kAgentLies = "agent lies: another node's version";
inline constexpr std::string_view kJournalFull = "journal disk full";

inline constexpr std::array<std::string_view, 30> kAll = {
    kDeadInGossip,   kDiesBeforeAct, kErrored,     kErroredAsInterrupted,
    kStoppedByHand,  kForeign,       kAdopted,     kAdoptedEnds,
    kNodeRestarts,   kReplaced,      kDownForDays, kPausedOverDeadNode,
    kDueWhileDown,   kLongCycle,     kWinsAgain,   kLeaderCrashes,
    kNoNewLeader,    kReplyLost,     kMissesPoint, kControllerKilled,
    kTwoControllers, kDiskFills,     kClockOff,    kControllerClock,
    kDaylightSaving, kPolicyChanged, kCertificate, kAgentTooOld,
    kAgentLies,      kJournalFull};
}  // namespace row

/// A person's change of the policy has come to the journal.
bool is_policy_change(const controller::JournalEvent& event, const Scenario& scenario);

/// Compares the claims of the journal with the truth at the nodes, row by row, and counts.
class Tournament {
 public:
  Tournament(Site& site, const Scenario& scenario, std::function<void(std::string)> violation);

  /// Of the run, with its parsed data.
  void run_event(const controller::JournalEvent& event, api::JsonView data);
  /// Of any other stream.
  void other_event(const controller::JournalEvent& event);
  /// A plan was refused: the answer's body.
  void refused(const std::string& body);
  /// An agent is about to do what it was asked.
  void acts(const std::string& node, const std::string& kind, const std::string& operation);

  // --- what happens
  [[nodiscard]] OperationFates& fates() { return fates_; }
  void started(const std::string& node, bool foreign);
  void refused_start(const std::string& node, const ModelScavenge& running);
  void clock_stepped(std::string_view host, std::chrono::milliseconds by);
  void write_refused(const std::string& host);
  /// Second of two equal hours: nothing was started by the schedule in it.
  void due_hour_repeated() { met(row::kDaylightSaving); }
  /// A schedule's due time goes by.
  void due();

  [[nodiscard]] const FaultTally& met() const { return met_; }

 private:
  void met(std::string_view what) { ++met_[std::string(what)]; }
  void closed_gate(const std::string& code, const std::string& node, const std::string& reason);
  void claim_of(Ailment what, std::string_view row, const std::string& node,
                const std::string& reason, std::chrono::milliseconds late);
  void look_at_clocks();
  void waits_for_point(const std::string& step, const std::string& reason);
  void run_started(const controller::JournalEvent& event, api::JsonView data);
  void schedule_event(const controller::JournalEvent& event);

  Site& site_;
  const Scenario& scenario_;
  FaultTally met_;
  Rulings rulings_;
  OperationFates fates_;
  std::set<std::string> skipped_nodes_;
  std::set<std::string> foreign_ids_;
  std::map<std::string, Monotonic> point_seen_at_;  ///< by node, that of the run
  std::int64_t shared_point_ = -1;
  std::string run_;  ///< the first one
  bool run_ended_ = false;
  bool policy_changed_ = false;
  bool due_while_down_ = false;
  bool controller_clock_jumped_ = false;
  bool write_refused_ = false;
};

}  // namespace verger::sim
