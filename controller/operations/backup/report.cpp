#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/operations/backup/backup_module.h"
#include "controller/operations/backup/repository_work.h"
#include "controller/operations/report_support.h"

namespace verger::controller::backups {
namespace {

using nlohmann::json;
using steps::parsed_or_empty;

/// What the steps of the run saw.
struct SeenInBackup {
  json made = json::array();
  json verified = json::array();
  json drilled = json::array();
  json deleted = json::array();
  json scavenges = json::array();
  json notes = json::array();
  std::int64_t freed = 0;
  bool damaged = false;
  bool drill_failed = false;

  explicit SeenInBackup(const RunState& run) {
    reports::each_step(run, [this, &run](const planner::Step& step, const StepState* state) {
      if (state != nullptr && state->status == StepStatus::kDone) {
        take(run, step, *state);
      }
    });
  }

 private:
  void take(const RunState& run, const planner::Step& step, const StepState& state) {
    json result = *state.result;
    if (const auto why = result.value("not_needed", std::string()); !why.empty()) {
      if (step.kind != names::kHold && step.kind != names::kRelease) {
        notes.push_back(fmt::format("{}: not done, since {}", step.id, why));
      }
      return;
    }
    if (step.kind == names::kCreate) {
      take_made(state, std::move(result));
    } else if (step.kind == names::kVerify || step.kind == names::kDrill) {
      result.erase(std::string(kDifferences));
      result["node"] = step.node;
      const bool passed = result.value("passed", false);
      const bool is_drill = step.kind == names::kDrill;
      (is_drill ? drill_failed : damaged) |= !passed;
      (is_drill ? drilled : verified).push_back(std::move(result));
    } else if (step.kind == names::kRetain) {
      for (const auto& id : result.value("deleted", json::array())) {
        deleted.push_back(id);
      }
      freed += result.value("bytes", std::int64_t{0});
      if (const auto why = result.value("postponed", std::string()); !why.empty()) {
        notes.push_back(fmt::format("content of deleted backups stays for now: {}", why));
      }
    } else if (step.kind == names::kHold) {
      take_held(run, step);
    }
  }

  void take_made(const StepState& state, json result) {
    const auto seconds = static_cast<double>(state.active_ms) / 1'000.0;
    const auto copied = result.value("stored_bytes", std::int64_t{0}) -
                        result.value("reused_bytes", std::int64_t{0});
    result["seconds"] = seconds;
    result["bytes_per_second"] =
        seconds > 0 && copied >= 0
            ? json(static_cast<std::int64_t>(static_cast<double>(copied) / seconds))
            : json();
    made.push_back(std::move(result));
  }

  void take_held(const RunState& run, const planner::Step& step) {
    const auto value = run.values.find(fmt::format("{}{}", names::kHeldValue, step.node));
    if (value == run.values.end()) {
      return;
    }
    const auto held = parsed_or_empty(value->second);
    const auto released = run.steps.find("release-" + step.node);
    scavenges.push_back({{"node", step.node},
                         {"scavenge_id", held.value("scavenge_id", std::string())},
                         {"held_at", held.value("held_at", json())},
                         {"continued", released != run.steps.end() &&
                                           released->second.status == StepStatus::kDone}});
  }
};

std::string_view outcome_of(const RunState& run, const SeenInBackup& seen) {
  if (seen.damaged) {
    return "damaged";
  }
  if (seen.drill_failed) {
    return "drill-failed";
  }
  return run.status == RunStatus::kDone ? "done" : "unfinished";
}

}  // namespace

json report(const RunState& run, json timeline) {
  SeenInBackup seen(run);
  for (const auto& each : seen.scavenges) {
    if (!each.value("continued", false)) {
      seen.notes.push_back(
          fmt::format("the scavenge {} of {} was stopped, and was not seen to run again",
                      each.value("scavenge_id", std::string()), each.value("node", std::string())));
    }
  }
  for (const auto& note : run.plan->notes) {
    if (note.contains("was restored or cut")) {
      seen.notes.push_back(note);
    }
  }
  return {{"outcome", outcome_of(run, seen)},       {"backups", std::move(seen.made)},
          {"verified", std::move(seen.verified)},   {"drilled", std::move(seen.drilled)},
          {"deleted", std::move(seen.deleted)},     {"freed_bytes", seen.freed},
          {"scavenges", std::move(seen.scavenges)}, {"timeline", std::move(timeline)},
          {"notes", std::move(seen.notes)}};
}

}  // namespace verger::controller::backups
