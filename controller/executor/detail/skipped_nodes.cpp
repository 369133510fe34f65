#include "controller/executor/detail/skipped_nodes.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::controller::detail {
namespace {

/// Work of an agent that reads or writes its node's files. With the server stopped, what only a
/// running server can do is over.
bool works_on_files(const planner::NodeSnapshot& node, const planner::AgentWork& work) {
  constexpr std::string_view kShort[] = {"resign", "set_priority", "reload", "start_service"};
  constexpr std::string_view kOfServer[] = {"scavenge", "scavenge_point"};
  const auto is_in = [&work](const auto& list) {
    return std::ranges::find(list, work.kind) != std::end(list);
  };
  return !is_in(kShort) && !(node.stopped && is_in(kOfServer));
}

}  // namespace

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
  if (seen != nullptr && seen->scavenge_running.value_or(false)) {
    out.what = seen->running.scavenge_id.empty()
                   ? std::string("still scavenges")
                   : fmt::format("still scavenges ({})", seen->running.scavenge_id);
    out.seen = true;
    return out;
  }
  if (seen != nullptr) {
    const auto work = std::ranges::find_if(
        seen->agent_work, [seen](const auto& each) { return works_on_files(*seen, each); });
    if (work != seen->agent_work.end()) {
      out.what = fmt::format("has an agent at work: {} ({})", work->kind, work->id);
      out.seen = true;
      return out;
    }
  }
  if (seen != nullptr && seen->answered && !seen->scavenge_running) {
    out.what = fmt::format("does not show whether it still scavenges: {}", seen->problem);
    return out;
  }
  if (!step.empty() && (seen == nullptr || (!seen->answered && !seen->stopped))) {
    out.what = fmt::format("cannot be seen, and {} was begun there{}{}", step,
                           seen == nullptr ? "" : ": ", seen == nullptr ? "" : seen->problem);
    return out;
  }
  return std::nullopt;
}

bool waits_for_others(const planner::Step& step) {
  return std::ranges::any_of(step.gates, [](const planner::Gate& gate) {
    return gate.name == "nobody-scavenges" || gate.name == "others-idle";
  });
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
        if (waits_for_others(step) && !run.skipped_nodes.contains(step.node) &&
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
