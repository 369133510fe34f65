#include <nlohmann/json.hpp>

#include "controller/operations/heal/heal_module.h"
#include "controller/operations/heal/step_kinds.h"

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
  std::size_t done = 0;
  std::size_t begun = 0;
  bool proven = true;
  for (const auto& stage : run.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        if (step.kind != names::kHealFilter) {
          continue;
        }
        const auto found = run.steps.find(step.id);
        const auto* state = found == run.steps.end() ? nullptr : &found->second;
        nodes.push_back(healed_node(step, state));
        begun += state != nullptr && state->attempt > 0 ? 1U : 0U;
        if (nodes.back().at("state") == "healed") {
          ++done;
          proven =
              proven && nodes.back().at("lost_after") == 0 && nodes.back().at("not_found").empty();
        }
      }
    }
  }
  const auto* outcome = done < nodes.size() ? (begun == 0 ? "unchanged" : "unfinished")
                        : proven            ? "healed"
                                            : "not-proven";
  return {{"outcome", outcome},
          {"nodes", std::move(nodes)},
          {"timeline", std::move(timeline)},
          {"notes", json::array()}};
}

}  // namespace verger::controller::healing
