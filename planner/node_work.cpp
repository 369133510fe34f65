#include "planner/node_work.h"

#include <algorithm>
#include <fmt/format.h>

#include "planner/operations.h"

namespace verger::planner {
namespace {

/// With the server stopped, what only a running server can do is over.
bool works_on_files(const NodeSnapshot& node, const AgentWork& work) {
  const auto* kind = find_agent_kind(work.kind);
  return kind == nullptr || (kind->touches_files && !(node.stopped && kind->needs_server));
}

}  // namespace

std::optional<NodeWork> work_on(const NodeSnapshot& node) {
  if (node.scavenge_running.value_or(false)) {
    return NodeWork{.what = node.running.scavenge_id.empty()
                                ? std::string("still scavenges")
                                : fmt::format("still scavenges ({})", node.running.scavenge_id),
                    .seen = true};
  }
  const auto work = std::ranges::find_if(
      node.agent_work, [&node](const auto& each) { return works_on_files(node, each); });
  if (work != node.agent_work.end()) {
    return NodeWork{.what = fmt::format("has an agent at work: {} ({})", work->kind, work->id),
                    .seen = true};
  }
  if (node.answered && !node.scavenge_running) {
    return NodeWork{.what =
                        fmt::format("does not show whether it still scavenges: {}", node.problem)};
  }
  return std::nullopt;
}

bool outlasts_server(const AgentWork& work) {
  const auto* kind = find_agent_kind(work.kind);
  return kind == nullptr || (kind->touches_files && !kind->needs_server);
}

bool waits_for_work_elsewhere(const Step& step) {
  return std::ranges::any_of(step.gates, [](const Gate& gate) {
    return gate.name == "no-scavenge-running" || gate.name == "no-scavenge-elsewhere";
  });
}

}  // namespace verger::planner
