#include <nlohmann/json.hpp>

#include "controller/operations/heal/heal_module.h"
#include "controller/operations/heal/step_kinds.h"
#include "controller/operations/report_support.h"

namespace verger::controller::healing {
namespace {

using nlohmann::json;

json healed_node(const planner::Step& step, const StepState* state) {
  const bool ended = state != nullptr && state->status == StepStatus::kDone;
  const json result = ended ? *state->result : json::object();
  return {{"node", step.node},
          {"state", ended ? "healed" : "not-done"},
          {"lost_before", result.value("lost_before", std::int64_t{-1})},
          {"lost_after", result.value("lost_after", std::int64_t{-1})},
          {"streams_read", result.value("streams_read", std::int64_t{0})},
          {"not_found", result.value("not_found", json::array())},
          {"seconds", state == nullptr ? 0.0 : static_cast<double>(state->active_ms) / 1'000.0}};
}

}  // namespace

json report(const RunState& run, json timeline) {
  auto nodes = json::array();
  bool begun = false;
  bool healed = true;  // all of them
  bool proven = true;
  reports::each_step(run, [&](const planner::Step& step, const StepState* state) {
    if (step.kind != names::kHealFilter) {
      return;
    }
    const auto& node = nodes.emplace_back(healed_node(step, state));
    begun = begun || (state != nullptr && state->attempt > 0);
    healed = healed && node.at("state") == "healed";
    proven = proven && node.at("lost_after") == 0 && node.at("not_found").empty();
  });
  const auto* outcome = !healed  ? (begun ? "unfinished" : "unchanged")
                        : proven ? "healed"
                                 : "not-proven";
  return {{"outcome", outcome},
          {"nodes", std::move(nodes)},
          {"timeline", std::move(timeline)},
          {"notes", json::array()}};
}

}  // namespace verger::controller::healing
