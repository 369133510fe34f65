#include "controller/operations/report_support.h"

#include <algorithm>

namespace verger::controller::reports {

bool is_done(const RunState& run) {
  return run.status == RunStatus::kDone || run.status == RunStatus::kDoneWithDifferences;
}

std::string_view outcome_of_undo(const std::vector<NodeUndo>& undone, bool touched) {
  if (!touched) {
    return "unchanged";
  }
  return std::ranges::all_of(
             undone, [](const NodeUndo& each) { return each.outcome == UndoOutcome::kUndone; })
             ? "undone"
             : "not-undone";
}

NotUndone not_undone(const std::vector<NodeUndo>& undone) {
  NotUndone out;
  for (const auto& each : undone) {
    if (each.outcome != UndoOutcome::kUndone) {
      out.reason += out.reason.empty() ? each.reason : "; " + each.reason;
      out.commands.insert(out.commands.end(), each.commands.begin(), each.commands.end());
    }
  }
  return out;
}

}  // namespace verger::controller::reports
