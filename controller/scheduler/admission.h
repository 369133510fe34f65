#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controller/executor/run_snapshot.h"
#include "controller/scheduler/schedule_policy.h"

namespace verger::controller {

/// A cluster that a policy selects: what else binds its runs there.
struct Binding {
  std::string cluster;
  WindowRules windows;  ///< its own, and the deny windows of others (PolicyBook::rules)
  /// How long its runs took at work, as far as there were any.
  std::optional<std::chrono::seconds> past_duration{};
};

/// The longest time at work of the last runs of a cluster that were done, newest first: as
/// the operation counts it. nullopt: there were none.
std::optional<std::chrono::seconds> past_duration(
    std::span<const std::shared_ptr<const RunSummary>> runs, const SchedulePolicy& policy);

/// Refuses a policy whose windows can never hold its expected duration, with the arithmetic; looks
/// 366 days ahead of `now`, at each cluster with all windows that bind it. What its runs took in
/// the past counts where it is longer than what the policy expects. What is allowed but worth
/// knowing comes back as notes.
std::expected<std::vector<std::string>, std::vector<PolicyProblem>> admit(
    const SchedulePolicy& policy, Instant now, const std::vector<Binding>& bindings = {});

}  // namespace verger::controller
