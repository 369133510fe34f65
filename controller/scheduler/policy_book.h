#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/executor/working_hours.h"
#include "controller/journal/journal.h"
#include "controller/scheduler/schedule_policy.h"

namespace verger::controller {

/// Types of the events in the streams "policy/<name>".
namespace events {
inline constexpr std::string_view kPolicyApplied = "policy-applied";  ///< {yaml, by}
inline constexpr std::string_view kPolicyRemoved = "policy-removed";  ///< {by}
}  // namespace events

/// A policy as it was applied last.
struct StoredPolicy {
  SchedulePolicy policy;
  std::string by;
  Ticks at;
  Revision revision;  ///< grows with each change; the API's ETag
};

/// The policies this controller follows, journaled, and the working hours that come from them. One
/// thread; the journal outlives it.
///
/// A cluster's hours are the allow windows of the run's own policy, less the deny windows of all
/// enabled policies that select the cluster: peak hours hold for every run, a person's too. A
/// change counts at once, also for runs under way; after its removal a policy's windows still hold
/// for its own runs.
class PolicyBook final : public WorkingHours {
 public:
  PolicyBook(Journal& journal, ControllerEpoch epoch, planner::Policy defaults)
      : journal_(journal), epoch_(epoch), defaults_(std::move(defaults)) {}
  /// Replays the journal. Call once, before anything else. Errors: the journal's; kCorruption for a
  /// policy that this controller cannot read.
  Result<void> load();

  [[nodiscard]] std::expected<SchedulePolicy, std::vector<PolicyProblem>> parse(
      std::string_view yaml) const {
    return parse_schedule_policy(yaml, defaults_);
  }
  /// Of an admitted policy; `expected` is the revision the caller saw. Errors: kConflict (another
  /// caller changed it), the journal's.
  Result<StoredPolicy> apply(SchedulePolicy policy, std::string by,
                             std::optional<Revision> expected = std::nullopt);
  /// Errors: kNotFound, kConflict, the journal's.
  Result<void> remove(std::string_view name, std::string by,
                      std::optional<Revision> expected = std::nullopt);
  /// Errors: kNotFound, naming the policies there are.
  [[nodiscard]] Result<StoredPolicy> find(std::string_view name) const;
  [[nodiscard]] std::vector<StoredPolicy> list() const;
  /// Grows with every change.
  [[nodiscard]] std::int64_t version() const { return version_; }

  /// The windows that hold for runs of `policy` on `cluster`.
  [[nodiscard]] WindowRules rules(const ClusterConfig& cluster, std::string_view policy) const;
  /// The same of a policy that is not applied yet, or not in this form.
  [[nodiscard]] WindowRules rules(const ClusterConfig& cluster, const SchedulePolicy& policy) const;
  [[nodiscard]] std::optional<planner::Hours> hours(const ClusterConfig& cluster,
                                                    std::string_view policy,
                                                    Ticks now) const override;

 private:
  struct Entry {
    std::optional<StoredPolicy> stored;
    bool removed = false;
    Revision revision;
  };
  struct Known {
    std::int64_t version = 0;
    std::map<std::string, std::string> labels;
    Opening opening;
    bool limited = false;
    Instant looked_at;
  };
  /// `known`: a policy that has been read from its text already.
  Result<void> fold(const JournalEvent& event, const SchedulePolicy* known = nullptr);
  Result<void> append(std::string_view name, NewEvent event, std::optional<Revision> expected,
                      const SchedulePolicy* known = nullptr);

  Journal& journal_;
  ControllerEpoch epoch_;
  planner::Policy defaults_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::int64_t version_ = 1;
  mutable std::map<std::pair<std::string, std::string>, Known> known_;
};

}  // namespace verger::controller
