#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/gate_table.h"

/// Gates: evaluated when planning, and again before each side effect. Pure functions. What gates
/// there are: planner/gate_table.h.
namespace verger::planner {

enum class GateVerdict : std::uint8_t {
  kOpen,
  kClosed,    ///< waiting may open it
  kDeferred,  ///< other stages first
};

/// An open gate with a reason is one that could not be looked at: "not seen" is not "fine".
struct GateState {
  GateVerdict verdict = GateVerdict::kOpen;
  std::string gate;
  std::string code;    ///< of the refusal it would be at planning time
  std::string node;    ///< whom it is about; may be another than the step's
  std::string reason;  ///< for people
  std::string hint;
  std::string value;  ///< the current one, where the gate measures something; of open gates, too
  std::string limit;
};

/// How long the gate may be closed before an alert fires: the policy's time for all gates, or,
/// where that is 0, the time of the gate's severity; 0: no alert. "does-not-fit": a step that does
/// not fit into its maintenance window.
std::int64_t alert_after_ms(std::string_view gate, const RunLimits& limits);

/// All causes that keep the gate closed; when there is none, what was measured. An unknown gate is
/// closed and says so. `lasts_ms`: how long the step may take; `threads`: that it works with.
std::vector<GateState> evaluate(const Gate& gate, const ClusterSnapshot& snapshot,
                                std::string_view node, std::int64_t lasts_ms = 0,
                                std::int64_t threads = 1);
/// The same for a member of `snapshot`; nullptr: a step on the cluster.
std::vector<GateState> evaluate(const Gate& gate, const ClusterSnapshot& snapshot,
                                const NodeSnapshot* node, std::int64_t lasts_ms = 0,
                                std::int64_t threads = 1);
/// Without what was measured of an open one: a plan of a thousand nodes is in no need of it.
std::vector<GateState> evaluate_causes(const Gate& gate, const ClusterSnapshot& snapshot,
                                       const NodeSnapshot* node, std::int64_t lasts_ms = 0,
                                       std::int64_t threads = 1);

}  // namespace verger::planner
