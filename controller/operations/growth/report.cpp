#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"
#include "controller/operations/growth/growth_module.h"
#include "controller/operations/growth/growth_support.h"
#include "controller/operations/report_support.h"
#include "controller/operations/restore/restore_support.h"
#include "planner/growth/growth_policy.h"
#include "planner/restore/restore_steps.h"

namespace verger::controller::growth {
namespace {

using nlohmann::json;

/// What the steps of the new node showed.
struct GrowthSeen {
  std::string node;
  std::string generation;
  json restored = json::object();
  json followed = json::object();
  json registered = json::object();
  bool touched = false;  ///< its server was stopped, or may have been

  explicit GrowthSeen(const RunState& run) {
    reports::each_step(run, [this](const planner::Step& step, const StepState* state) {
      if (state != nullptr) {
        take(step, *state);
      }
    });
  }

 private:
  void take(const planner::Step& step, const StepState& state) {
    const json result = state.status == StepStatus::kDone ? *state.result : json::object();
    if (step.kind == names::kRegister) {
      node = step.node;
      registered = result;
    } else if (step.kind == planner::restore_steps::kRestore) {
      generation = steps::text_parameter(step, "generation");
      restored = result;
    } else if (step.kind == planner::restore_steps::kCheck) {
      followed = result;
    } else if (step.kind == planner::restore_steps::kStop) {
      touched = touched || state.attempt > 0;
    }
  }
};

std::string_view outcome_of(const RunState& run, const GrowthSeen& seen,
                            const std::vector<NodeUndo>& undone) {
  if (reports::is_done(run)) {
    return "joined";
  }
  const bool committed = std::ranges::any_of(run.values, [](const auto& value) {
    return value.first.starts_with(planner::restore_steps::kCommittedValue);
  });
  if (committed) {
    return "not-registered";
  }
  return reports::outcome_of_undo(undone, seen.touched);
}

}  // namespace

json report(const RunState& run, json timeline) {
  const GrowthSeen seen(run);
  const auto& wanted = planner::growth_of(run.plan->policy);
  const auto undone = undo_report(run);
  const auto outcome = outcome_of(run, seen, undone);
  auto open = reports::not_undone(undone);
  auto notes = json::array();
  if (outcome == "joined") {
    notes.push_back(fmt::format(
        "add {} to the gossip seeds of the other nodes when you next change their configuration, "
        "and to clients that list the nodes",
        seen.node));
    if (!seen.restored.value("old_files", std::string()).empty()) {
      notes.push_back(fmt::format(
          "what its directory had is kept in {}; remove it with: verger restore discard-old {} "
          "--generation {} --nodes {}",
          seen.restored.value("old_files", std::string()), run.cluster, seen.generation,
          seen.node));
    }
    if (!wanted.replaces.empty()) {
      notes.push_back(
          fmt::format("{} is no longer registered; it must never start again", wanted.replaces));
    }
  } else if (outcome == "undone" || outcome == "unchanged") {
    notes.push_back(fmt::format("{} is not registered, and its server is stopped", seen.node));
  }
  const auto duration = seen.restored.value("duration_ms", json());
  cluster_restore::note_redacted_again(run, notes);
  return {
      {"outcome", outcome},
      {"node", seen.node},
      {"role", to_string(wanted.role)},
      {"replaces", wanted.replaces},
      {"generation", seen.generation},
      {"bytes", seen.restored.value("bytes", json())},
      {"restore_seconds", duration.is_number() ? json(duration.get<double>() / 1'000.0) : json()},
      {"end_position", seen.restored.value("end_position", json())},
      {"writer", seen.registered.value("writer", json())},
      {"leader", seen.followed.value("leader", std::string())},
      {"reason", std::move(open.reason)},
      {"commands", std::move(open.commands)},
      {"timeline", std::move(timeline)},
      {"notes", std::move(notes)}};
}

}  // namespace verger::controller::growth
