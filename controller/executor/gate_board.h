#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "controller/executor/run_state.h"
#include "engine/base/types.h"
#include "planner/gates.h"

namespace verger::controller {

/// What a step's gates were when they were last evaluated.
struct SeenGates {
  Ticks at;  ///< of the newest snapshot that they were evaluated with
  /// By the gate's name, in the step's order.
  std::vector<std::pair<std::string, std::vector<planner::GateState>>> gates;
};

/// The gates of a run as they were last evaluated, open ones with their values too: of the steps
/// that wait or are under way, and of the one that was begun last. In memory only: a controller
/// that starts has the closed gates from the journal, and the others with its first look.
class GateBoard {
 public:
  /// planner::evaluate() of one of `step`'s gates, kept here. A step that is new here takes the
  /// place of those that have ended.
  const std::vector<planner::GateState>& evaluate(const RunState& run, const planner::Step& step,
                                                  const planner::Gate& gate,
                                                  const planner::ClusterSnapshot& snapshot,
                                                  std::int64_t threads);
  /// By step.
  [[nodiscard]] const std::map<std::string, SeenGates>& steps() const { return steps_; }

 private:
  std::map<std::string, SeenGates> steps_;
};

/// Journaled states of gates, `[{"gate", ...}]`, with the names of today also where an earlier
/// version wrote them.
nlohmann::json with_current_gate_names(nlohmann::json gates);

}  // namespace verger::controller
