#include <algorithm>

#include <nlohmann/json.hpp>

#include "controller/api/views.h"
#include "engine/base/clock.h"
#include "planner/gates.h"

// What the steps of a run wait for, and what they would wait for.
namespace verger::controller::views {
namespace {

using nlohmann::json;

std::string text_member(const json& object, const char* name) {
  return object.value(name, std::string());
}

std::string state_text(const planner::GateState& state, const RunState& run) {
  if (state.verdict == planner::GateVerdict::kOpen) {
    return state.reason.empty() ? "open" : "not_seen";
  }
  if (run.skipped_nodes.contains(state.node)) {
    return "skipped";
  }
  return state.verdict == planner::GateVerdict::kDeferred ? "deferred" : "closed";
}

json gate_entry(const std::string& gate, const std::string& node, const std::string& state) {
  const auto* known = planner::find_gate(gate);
  return {{"gate", gate},
          {"node", node},
          {"state", state},
          {"code", ""},
          {"value", ""},
          {"limit", ""},
          {"reason", ""},
          {"hint", ""},
          {"severity", known == nullptr ? json() : json(planner::to_string(known->severity))},
          {"since", nullptr},
          {"alert_at", nullptr}};
}

json seen_gate(const planner::GateState& state, const RunState& run) {
  auto out = gate_entry(state.gate, state.node, state_text(state, run));
  out["code"] = state.code;
  out["value"] = state.value;
  out["limit"] = state.limit;
  out["reason"] = state.reason;
  out["hint"] = state.hint;
  return out;
}

/// What the journal has of one that is closed.
json journaled_gate(const json& closed) {
  auto out = gate_entry(text_member(closed, "gate"), text_member(closed, "node"), "closed");
  for (const auto* name : {"code", "value", "limit", "reason", "since", "alert_at"}) {
    out[name] = closed.value(name, out[name]);
  }
  return out;
}

bool is_of(const json& shown, std::string_view gate) {
  const auto name = text_member(shown, "gate");
  return name == gate || (name.starts_with(gate) && name[gate.size()] == ':');  // "queries:load"
}

json gates_of_step(const planner::Step& step, const StepState& state, const RunState& run,
                   const SeenGates* seen) {
  auto closed = waiting_for(state, run);
  auto out = json::array();
  for (const auto& gate : step.gates) {
    const auto before = out.size();
    if (seen != nullptr) {
      for (const auto& [name, states] : seen->gates) {
        if (name == gate.name) {
          for (const auto& each : states) {
            out.push_back(seen_gate(each, run));
          }
        }
      }
    }
    // Since when a gate is closed is in the journal alone; and before this controller's first look,
    // that it is closed.
    for (auto each = closed.begin(); each != closed.end();) {
      if (!is_of(*each, gate.name)) {
        ++each;
        continue;
      }
      const auto same = std::find_if(out.begin(), out.end(), [&each](const json& shown) {
        return shown["gate"] == (*each)["gate"] && shown["node"] == (*each)["node"] &&
               shown["state"] != "open";
      });
      if (same == out.end()) {
        out.push_back(journaled_gate(*each));
      } else {
        (*same)["since"] = (*each)["since"];
        (*same)["alert_at"] = (*each)["alert_at"];
      }
      each = closed.erase(each);
    }
    if (out.size() == before) {
      out.push_back(gate_entry(gate.name, "", "unknown"));
      out.back()["limit"] = planner::limit_text(gate);
    }
  }
  for (const auto& each : closed) {
    out.push_back(journaled_gate(each));  // no gate of the plan: the step does not fit
  }
  return out;
}

}  // namespace

json waiting_for(const StepState& state, const RunState& run) {
  const bool looks = run.status == RunStatus::kRunning || run.status == RunStatus::kWaiting;
  auto gates = json::parse(state.gates, nullptr, false);
  for (auto& gate : gates) {
    const auto since = parse_ticks(text_member(gate, "since"));
    const auto after = planner::alert_after_ms(text_member(gate, "gate"), run.plan->policy.limits);
    gate["alert_at"] =
        looks && since && after > 0
            ? json(format_ticks(Ticks(since->value() + after * kTicksPerMillisecond)))
            : json();
  }
  return gates;
}

json gates(const RunState& run, const GateBoard& board) {
  auto steps = json::array();
  for (const auto& stage : run.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        const auto state = run.steps.find(step.id);
        const auto seen = board.steps().find(step.id);
        const bool waits = state != run.steps.end() && state->second.status == StepStatus::kWaiting;
        if (state == run.steps.end() || (seen == board.steps().end() && !waits)) {
          continue;
        }
        const auto* found = seen == board.steps().end() ? nullptr : &seen->second;
        steps.push_back(
            {{"step", step.id},
             {"node", step.node},
             {"state", to_string(state->second.status)},
             {"evaluated_at", found == nullptr ? json() : json(format_ticks(found->at))},
             {"gates", gates_of_step(step, state->second, run, found)}});
      }
    }
  }
  return {{"run", run.id}, {"steps", std::move(steps)}};
}

}  // namespace verger::controller::views
