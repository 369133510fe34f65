#include "controller/executor/undo_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace verger::controller {
namespace {

/// kUndone is the best, kUnderWay worse, kNotUndone the worst.
int badness(UndoOutcome outcome) {
  return outcome == UndoOutcome::kUndone ? 0 : outcome == UndoOutcome::kUnderWay ? 1 : 2;
}

std::optional<UndoOutcome> outcome_of(const planner::Step& step, const StepState& state,
                                      bool stage_is_undone) {
  if (state.undo_end) {
    return state.undo_end->undone ? UndoOutcome::kUndone : UndoOutcome::kNotUndone;
  }
  const bool undoable = state.undoing || (!step.undo.empty() && state.attempt > 0);
  return stage_is_undone && undoable ? std::optional(UndoOutcome::kUnderWay) : std::nullopt;
}

void add(NodeUndo& node, const planner::Step& step, const StepState& state, UndoOutcome outcome) {
  if (badness(outcome) > badness(node.outcome)) {
    node.outcome = outcome;
  }
  if (!state.undo_end) {
    return;
  }
  const auto& end = *state.undo_end;
  node.at = std::max(node.at.value_or(end.at), end.at);
  if (end.undone) {
    return;
  }
  node.reason += fmt::format("{}{}: {}", node.reason.empty() ? "" : "; ", step.id, end.reason);
  if (!end.command.empty() &&
      std::ranges::find(node.commands, end.command) == node.commands.end()) {
    node.commands.push_back(end.command);
  }
}

}  // namespace

std::string_view to_string(UndoOutcome outcome) {
  switch (outcome) {
    case UndoOutcome::kUndone:
      return "undone";
    case UndoOutcome::kNotUndone:
      return "not-undone";
    case UndoOutcome::kUnderWay:
      return "under-way";
  }
  return "";
}

std::vector<NodeUndo> undo_report(const RunState& run) {
  std::map<std::string, NodeUndo> by_node;
  for (const auto& stage : run.plan->stages) {
    const auto known = run.stages.find(stage.id);
    const bool is_undone =
        known != run.stages.end() && known->second.status == StageStatus::kUndoing;
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        const auto& state = run.steps.at(step.id);
        if (const auto outcome = outcome_of(step, state, is_undone)) {
          auto& node = by_node
                           .try_emplace(step.node, NodeUndo{.node = step.node,
                                                            .outcome = UndoOutcome::kUndone,
                                                            .at = {},
                                                            .reason = {},
                                                            .commands = {}})
                           .first->second;
          add(node, step, state, *outcome);
        }
      }
    }
  }
  std::vector<NodeUndo> out;
  for (auto& [name, node] : by_node) {
    if (node.outcome == UndoOutcome::kUnderWay) {
      node.at.reset();
    }
    out.push_back(std::move(node));
  }
  return out;
}

std::string not_undone_text(const RunState& run) {
  std::string out;
  for (const auto& node : undo_report(run)) {
    if (node.outcome != UndoOutcome::kNotUndone) {
      continue;
    }
    out += fmt::format("{}{} is not undone ({})", out.empty() ? "" : "; ",
                       node.node.empty() ? "the cluster" : node.node, node.reason);
    if (!node.commands.empty()) {
      out += fmt::format("; run: {}", fmt::join(node.commands, " && "));
    }
  }
  return out;
}

}  // namespace verger::controller
