#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/operations/certificates/certificates_module.h"
#include "controller/operations/certificates/change_support.h"
#include "controller/operations/report_support.h"
#include "engine/base/clock.h"
#include "engine/base/quantities.h"
#include "planner/certificates/certificates_policy.h"

namespace verger::controller::certificate_change {
namespace {

using nlohmann::json;

json time_of(const json& result, const char* name) {
  const auto found = result.find(name);
  return found != result.end() && found->is_string() ? *found : json();
}

/// What the steps of the run saw.
struct SeenInRun {
  std::map<std::string, CheckedNode> checked;
  std::map<std::string, bool> switched;  ///< by node: its leaf, and it was not undone
  json proofs = json::array();
  json proven_at;
  json seconds_to_proof;
  json watched_seconds;
  json notes = json::array();
  bool restored = false;  ///< the former state was proven
  bool touched = false;   ///< a switch was begun

  explicit SeenInRun(const RunState& run) : checked(checked_nodes(run.values)) {
    reports::each_step(run, [this](const planner::Step& step, const StepState* state) {
      if (state != nullptr) {
        take(step, *state);
      }
    });
  }

 private:
  void take(const planner::Step& step, const StepState& state) {
    const json result = *state.result;
    const bool done = state.status == StepStatus::kDone;
    if (step.kind == names::kSwitch) {
      touched = touched || state.attempt > 0;
      if (steps::text_parameter(step, "phase") == names::kLeafPhase) {
        switched[step.node] = done;
      }
      note_open(step.node, result.value("not_proven", std::string()));
    } else if (step.kind == names::kProve && done) {
      take_proof(result);
    } else if (step.kind == names::kWatch && done) {
      watched_seconds = result.value("watched_seconds", json());
      note_troubles(result.value("troubles", 0), result.value("last_trouble", std::string()));
    } else if (step.kind == names::kCheck) {
      restored = state.status == StepStatus::kUndone;
      if (restored) {  // its warnings are about certificates and roots that no node has any longer
        proofs.push_back(
            {{"phase", "restored"},
             {"handshakes", json()},
             {"proven_at", state.undo_end ? json(format_ticks(state.undo_end->at)) : json()}});
        return;
      }
      for (const auto& warning : result.value("warnings", json::array())) {
        notes.push_back(warning);
      }
    }
  }

  void take_proof(const json& result) {
    proofs.push_back({{"phase", result.value("phase", std::string())},
                      {"handshakes", result.value("handshakes", json())},
                      {"proven_at", time_of(result, "proven_at")}});
    if (result.value("phase", std::string()) == names::kLeafPhase) {
      proven_at = time_of(result, "proven_at");
      seconds_to_proof = result.value("seconds_from_first_switch", json());
    }
    for (const auto& open : result.value("not_proven", json::array())) {
      notes.push_back(open);
    }
  }

  /// What was over before it made the run fail.
  void note_troubles(int count, const std::string& last) {
    if (count > 0) {
      notes.push_back(
          fmt::format("while the cluster was watched, something was wrong {}, and over by itself{}",
                      counted(count, "time"), last.empty() ? "" : "; last: " + last));
    }
  }

  void note_open(const std::string& node, const std::string& open) {
    if (!open.empty()) {
      notes.push_back(fmt::format("{}: {}", node, open));
    }
  }
};

std::string_view outcome_of(const RunState& run, const SeenInRun& seen,
                            const std::vector<NodeUndo>& undone) {
  const bool all_undone = std::ranges::all_of(
      undone, [](const NodeUndo& each) { return each.outcome == UndoOutcome::kUndone; });
  if (reports::is_done(run)) {
    return "changed";
  }
  if (!seen.touched) {
    return "unchanged";
  }
  return seen.restored && all_undone ? "undone" : "not-restored";
}

}  // namespace

json report(const RunState& run, json timeline) {
  SeenInRun seen(run);
  const auto undone = undo_report(run);
  auto nodes = json::array();
  for (const auto& [name, checked] : seen.checked) {
    const auto own = std::ranges::find(undone, name, &NodeUndo::node);
    const bool was_undone = own != undone.end() && own->outcome == UndoOutcome::kUndone;
    const bool switched = seen.switched.contains(name) && seen.switched.at(name);
    nodes.push_back(
        {{"name", name},
         {"serial_before", checked.serial_before},
         {"serial_after", switched ? checked.serial : checked.serial_before},
         {"not_after_before", checked.not_after_before},
         {"not_after", switched ? checked.not_after : checked.not_after_before},
         {"switched", switched},
         {"undone", was_undone},
         {"reason", own == undone.end() ? "" : own->reason},
         {"commands", own == undone.end() ? std::vector<std::string>() : own->commands}});
  }
  const auto opened = window_opened(run.values);
  const auto& policy = planner::certificates_of(run.plan->policy);
  return {{"outcome", outcome_of(run, seen, undone)},
          {"nodes", std::move(nodes)},
          {"first_switch_at", opened ? json(format_ticks(*opened)) : json()},
          {"proven_at", seen.proven_at},
          {"window_seconds", static_cast<double>(policy.window_ms) / 1'000.0},
          {"seconds_to_proof", seen.seconds_to_proof},
          {"watched_seconds", seen.watched_seconds},
          {"proofs", std::move(seen.proofs)},
          {"timeline", std::move(timeline)},
          {"notes", std::move(seen.notes)}};
}

}  // namespace verger::controller::certificate_change
