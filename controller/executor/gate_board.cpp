#include "controller/executor/gate_board.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace verger::controller {
namespace {

bool is_over(const RunState& run, const std::string& step) {
  const auto found = run.steps.find(step);
  return found == run.steps.end() || found->second.ended.has_value();
}

}  // namespace

const std::vector<planner::GateState>& GateBoard::evaluate(const RunState& run,
                                                           const planner::Step& step,
                                                           const planner::Gate& gate,
                                                           const planner::ClusterSnapshot& snapshot,
                                                           std::int64_t threads) {
  if (!steps_.contains(step.id)) {
    std::erase_if(steps_, [&run](const auto& each) { return is_over(run, each.first); });
  }
  auto& seen = steps_[step.id];
  seen.at = snapshot.taken_at;
  using Entry = std::pair<std::string, std::vector<planner::GateState>>;
  auto found = std::ranges::find(seen.gates, gate.name, &Entry::first);
  if (found == seen.gates.end()) {
    found = seen.gates.insert(found, Entry{gate.name, {}});
  }
  found->second = planner::evaluate(gate, snapshot, step.node, step.expected.high_ms, threads);
  return found->second;
}

nlohmann::json with_current_gate_names(nlohmann::json gates) {
  if (gates.is_array()) {
    for (auto& gate : gates) {
      if (gate.is_object() && gate.contains("gate") && gate.at("gate").is_string()) {
        gate["gate"] = planner::current_gate_name(gate.at("gate").get_ref<const std::string&>());
      }
    }
  }
  return gates;
}

}  // namespace verger::controller
