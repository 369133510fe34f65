#include "controller/executor/detail/skipped_nodes.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::controller::detail {

std::string unseen_step(const RunState& run, std::string_view node) {
  for (const auto& stage : run.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        if (step.node == node && run.steps.at(step.id).end_unseen) {
          return step.id;
        }
      }
    }
  }
  return {};
}

std::optional<LeftBehind> left_behind(const RunState& run, const planner::ClusterSnapshot& snapshot,
                                      std::string_view node) {
  const std::string name(node);
  if (!run.skipped_nodes.contains(name) || run.disregarded_nodes.contains(name)) {
    return std::nullopt;
  }
  const auto step = unseen_step(run, node);
  LeftBehind out;
  const auto* seen = snapshot.find(node);
  if (seen != nullptr) {
    if (auto work = planner::work_on(*seen)) {
      return work;
    }
  }
  if (!step.empty() && (seen == nullptr || (!seen->answered && !seen->stopped))) {
    out.what = fmt::format("cannot be seen, and {} was begun there{}{}", step,
                           seen == nullptr ? "" : ": ", seen == nullptr ? "" : seen->problem);
    return out;
  }
  return std::nullopt;
}

const planner::Step* next_waiting(const RunState& run) {
  for (const auto& id : run.order) {
    const auto stage = std::ranges::find(run.plan->stages, id, &planner::Stage::id);
    if (stage == run.plan->stages.end()) {
      continue;
    }
    for (const auto& group : stage->groups) {
      for (const auto& step : group) {
        const auto status = run.steps.at(step.id).status;
        if (planner::waits_for_work_elsewhere(step) && !run.skipped_nodes.contains(step.node) &&
            (status == StepStatus::kPending || status == StepStatus::kWaiting)) {
          return &step;
        }
      }
    }
  }
  return nullptr;
}

std::string how_to_disregard(const RunState& run, std::string_view node) {
  return fmt::format("to continue beside it: verger run skip {} {} --force --reason WHY",
                     run.id.substr(0, 12), node);
}

}  // namespace verger::controller::detail
