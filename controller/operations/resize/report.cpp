#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"
#include "controller/operations/report_support.h"
#include "controller/operations/resize/resize_module.h"
#include "controller/operations/resize/resize_support.h"
#include "controller/operations/restore/restore_support.h"
#include "planner/resize/resize_policy.h"
#include "planner/restore/restore_steps.h"

namespace verger::controller::resize {
namespace {

using nlohmann::json;

/// What the steps of the run showed.
struct ResizeSeen {
  std::int64_t from = 0;
  std::string generation;
  std::string leader;
  std::vector<std::string> joined;
  std::vector<std::string> left;
  json restarts = json::array();
  std::vector<std::string> kept;  ///< new nodes that keep what their directories had
  bool touched = false;

  explicit ResizeSeen(const RunState& run) {
    reports::each_step(run, [this](const planner::Step& step, const StepState* state) {
      if (state != nullptr) {
        take(step, *state);
      }
    });
  }

 private:
  void take(const planner::Step& step, const StepState& state) {
    const json result = state.status == StepStatus::kDone ? *state.result : json::object();
    if (step.kind == names::kSize) {
      from = steps::int_parameter(step, "from", 0);
      if (!result.empty()) {
        restarts.push_back({{"node", step.node},
                            {"size", result.value("size", 0)},
                            {"seeds", result.value("seeds", std::string())}});
      }
    } else if (step.kind == names::kStart) {
      joined.push_back(step.node);
    } else if (step.kind == names::kCommit) {
      leader = result.value("leader", std::string());
      left = steps::list_parameter(step, "left");
    } else if (step.kind == planner::restore_steps::kRestore) {
      generation = steps::text_parameter(step, "generation");
      if (!result.value("old_files", std::string()).empty()) {
        kept.push_back(step.node);
      }
    }
    touched =
        touched || (state.attempt > 0 && (step.kind == names::kSize || step.kind == names::kLeave ||
                                          step.kind == planner::restore_steps::kStop));
  }
};

std::string_view outcome_of_resize(const RunState& run, const ResizeSeen& seen,
                                   const std::vector<NodeUndo>& undone) {
  if (reports::is_done(run)) {
    return "resized";
  }
  if (run.values.contains(std::string(names::kCommittedValue))) {
    return "not-registered";
  }
  return reports::outcome_of_undo(undone, seen.touched);
}

}  // namespace

json report(const RunState& run, json timeline) {
  const ResizeSeen seen(run);
  const auto& wanted = planner::resize_of(run.plan->policy);
  const auto undone = undo_report(run);
  const auto outcome = outcome_of_resize(run, seen, undone);
  auto open = reports::not_undone(undone);
  auto notes = json::array();
  if (outcome == "resized") {
    notes.push_back(
        "change the list of nodes that clients connect to, and gossip seeds that were not in the "
        "servers' files");
    if (!seen.kept.empty()) {
      notes.push_back(fmt::format(
          "what their directories had is kept; remove it with: verger restore discard-old {} "
          "--generation {} --nodes {}",
          run.cluster, seen.generation, fmt::join(seen.kept, ",")));
    }
    if (!seen.left.empty()) {
      notes.push_back(fmt::format("{} must never start again", fmt::join(seen.left, " and ")));
    }
  }
  cluster_restore::note_redacted_again(run, notes);
  return {{"outcome", outcome},
          {"from", seen.from},
          {"to", wanted.to},
          {"joined", seen.joined},
          {"left", seen.left},
          {"generation", seen.generation},
          {"leader", seen.leader},
          {"reason", std::move(open.reason)},
          {"commands", std::move(open.commands)},
          {"restarts", seen.restarts},
          {"timeline", std::move(timeline)},
          {"notes", std::move(notes)}};
}

}  // namespace verger::controller::resize
