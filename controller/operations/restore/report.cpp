#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "controller/operations/report_support.h"
#include "controller/operations/restore/restore_module.h"
#include "controller/operations/restore/restore_support.h"
#include "engine/base/clock.h"
#include "planner/restore/restore_policy.h"

namespace verger::controller::cluster_restore {
namespace {

using nlohmann::json;

/// What the steps of one node showed.
struct NodeSeen {
  bool stopped = false;  ///< its server was stopped, or may have been
  bool was_stopped = false;
  bool restored = false;
  std::optional<json> restore;  ///< the result of its restore
  json discarded;
};

struct RunSeen {
  std::map<std::string, NodeSeen> nodes;
  std::string generation;
  std::int64_t end_position = -1;
  std::string leader;
  std::string not_read;

  explicit RunSeen(const RunState& run) {
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
    if (auto named = steps::text_parameter(step, "generation"); !named.empty()) {
      generation = std::move(named);
    }
    if (step.kind == names::kStop) {
      auto& node = nodes[step.node];
      node.stopped = node.stopped || state.attempt > 0;
      node.was_stopped =
          state.memo->value("was_stopped", false) || result.value("was_stopped", false);
    } else if (step.kind == names::kRestore) {
      auto& node = nodes[step.node];
      node.restored = done || (state.undo_end && !state.undo_end->undone);
      if (done) {
        node.restore = result;
      }
    } else if (step.kind == names::kDiscard) {
      nodes[step.node].discarded = result.value("bytes", json());
    } else if (step.kind == names::kCheck) {
      end_position = steps::int_parameter(step, "endPosition", end_position);
      if (done) {
        leader = result.value("leader", std::string());
        not_read = result.value("not_read", std::string());
      }
    }
  }
};

std::optional<std::string> committed_at(const RunState& run) {
  for (const auto& [name, value] : run.values) {
    if (name.starts_with(names::kCommittedValue)) {
      return steps::parsed_or_empty(value).value("at", std::string());
    }
  }
  return std::nullopt;
}

std::string_view outcome_of(const RunState& run, const RunSeen& seen,
                            const std::vector<NodeUndo>& undone) {
  const auto& wanted = planner::restore_of(run.plan->policy);
  if (reports::is_done(run)) {
    return wanted.task == planner::RestoreTask::kDiscardOld ? "discarded" : "restored";
  }
  if (committed_at(run)) {
    return "started";
  }
  return reports::outcome_of_undo(undone, std::ranges::any_of(seen.nodes, [](const auto& each) {
                                    return each.second.stopped;
                                  }));
}

std::string_view state_of(const RunState& run, const NodeSeen& node, const NodeUndo* undo) {
  if (!node.stopped) {
    return node.discarded.is_null() ? "untouched" : "discarded";
  }
  const bool failed = undo != nullptr && undo->outcome != UndoOutcome::kUndone;
  if (failed && !committed_at(run)) {
    return "not-undone";
  }
  return node.restored ? "restored" : undo != nullptr ? "undone" : "untouched";
}

json node_of(const RunState& run, const std::string& name, const NodeSeen& node,
             const RunSeen& seen, const NodeUndo* undo) {
  const auto before = positions_before(run.values);
  const auto found = before.find(name);
  const bool known = found != before.end() && found->second >= 0;
  const bool whole = planner::restore_of(run.plan->policy).scope == planner::RestoreScope::kCluster;
  const auto restore = node.restore.value_or(json::object());
  const auto bytes = restore.value("bytes", json());
  const auto duration = restore.value("duration_ms", json());
  return {{"name", name},
          {"state", state_of(run, node, undo)},
          {"bytes", bytes},
          {"seconds", duration.is_number() ? json(duration.get<double>() / 1'000.0) : json()},
          {"log_before", known ? json(found->second) : json()},
          {"lost_bytes", known && whole && node.restored && seen.end_position >= 0
                             ? json(std::max<std::int64_t>(found->second - seen.end_position, 0))
                             : json()},
          {"old_files", restore.value("old_files", std::string())},
          {"discarded_bytes", node.discarded},
          {"reason", undo == nullptr ? "" : undo->reason},
          {"commands", undo == nullptr ? std::vector<std::string>() : undo->commands}};
}

void add_notes(const RunState& run, const RunSeen& seen, std::string_view outcome, json& notes) {
  const auto& wanted = planner::restore_of(run.plan->policy);
  const bool kept = std::ranges::any_of(seen.nodes, [](const auto& each) {
    return each.second.restored && each.second.discarded.is_null();
  });
  // A single node takes what is newer from the others: its log is that of its earlier backups.
  if (outcome == "restored" && wanted.scope == planner::RestoreScope::kCluster) {
    notes.push_back(
        "the next backup of each node reads everything again by itself; make one soon: verger "
        "backup create");
  }
  if (outcome == "started") {
    notes.push_back(
        "restored servers were started, so no node was reverted; all nodes that were to be "
        "restored have the files of the backup, and may run together");
  }
  if (kept) {
    notes.push_back(fmt::format(
        "the former files are kept in old-before-{} of each node; remove them with: verger restore "
        "discard-old {} --generation {}",
        seen.generation, run.cluster, seen.generation));
  }
  if (!seen.not_read.empty()) {
    notes.push_back(fmt::format("no stream was read: {}", seen.not_read));
  }
  for (const auto& [name, node] : seen.nodes) {
    if (node.was_stopped && outcome != "restored" &&
        wanted.task == planner::RestoreTask::kRestore) {
      notes.push_back(fmt::format("{} was stopped before the run, and was not started", name));
    }
  }
}

}  // namespace

json report(const RunState& run, json timeline) {
  const RunSeen seen(run);
  const auto undone = undo_report(run);
  const auto outcome = outcome_of(run, seen, undone);
  auto nodes = json::array();
  for (const auto& [name, node] : seen.nodes) {
    const auto own = std::ranges::find(undone, name, &NodeUndo::node);
    nodes.push_back(node_of(run, name, node, seen, own == undone.end() ? nullptr : &*own));
  }
  auto notes = json::array();
  add_notes(run, seen, outcome, notes);
  note_redacted_again(run, notes);
  const auto committed = committed_at(run);
  return {{"outcome", outcome},
          {"generation", seen.generation},
          {"end_position", seen.end_position},
          {"committed_at", committed ? json(*committed) : json()},
          {"leader", seen.leader},
          {"nodes", std::move(nodes)},
          {"timeline", std::move(timeline)},
          {"notes", std::move(notes)}};
}

}  // namespace verger::controller::cluster_restore
