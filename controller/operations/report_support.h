#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/executor/run_state.h"
#include "controller/executor/undo_report.h"

/// What the reports of operations share.
namespace verger::controller::reports {

/// Calls `take(const planner::Step&, const StepState*)` for each step, in the plan's order;
/// nullptr: the run has no state of it.
template <class Take>
void each_step(const RunState& run, const Take& take) {
  for (const auto& stage : run.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        const auto found = run.steps.find(step.id);
        take(step, found == run.steps.end() ? nullptr : &found->second);
      }
    }
  }
}

/// All steps are done, if perhaps with differences.
[[nodiscard]] bool is_done(const RunState& run);

/// How a run ended that was to be undone: "unchanged" where it has `touched` no node, "undone", or
/// "not-undone" as long as something of it is not.
std::string_view outcome_of_undo(const std::vector<NodeUndo>& undone, bool touched);

/// Of the nodes that are not undone, in their order.
struct NotUndone {
  std::string reason;                 ///< of each, with "; " between
  std::vector<std::string> commands;  ///< that a person runs
};
NotUndone not_undone(const std::vector<NodeUndo>& undone);

}  // namespace verger::controller::reports
