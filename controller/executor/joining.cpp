#include "controller/executor/joining.h"

#include <fmt/format.h>
#include <utility>

#include "nodeagent/http/client.h"
#include "planner/operations.h"

namespace verger::controller {
namespace {

std::vector<planner::JoiningNode> joining_of(const planner::Policy& policy) {
  const auto* operation = planner::operation_of(policy);
  return operation == nullptr || operation->joining == nullptr ? std::vector<planner::JoiningNode>()
                                                               : operation->joining(policy);
}

/// With the URLs in their short form, and a name.
Result<ClusterNode> as_registered(const planner::JoiningNode& joins) {
  VERGER_TRY(const auto url, http::parse_endpoint(joins.url));
  ClusterNode out{.name = joins.name, .url = url.url(), .agent_url = {}};
  if (out.name.empty()) {
    out.name = fmt::format("{}:{}", url.host, url.port);
  }
  if (!joins.agent_url.empty()) {
    VERGER_TRY(const auto agent, http::parse_endpoint(joins.agent_url, http::kAgentPort));
    out.agent_url = agent.url();
  }
  return out;
}

}  // namespace

ClusterConfig with_joining(ClusterConfig config, const planner::Policy& policy) {
  for (const auto& each : joining_of(policy)) {
    auto node = as_registered(each);
    if (node && config.find(node->name) == nullptr) {
      config.joining.push_back(
          {.node = *std::move(node), .read_only_replica = each.read_only_replica});
    }
  }
  return config;
}

Result<void> check_joining(const Registry& registry, const ClusterConfig& config,
                           const planner::Policy& policy) {
  const auto joining = joining_of(policy);
  if (joining.empty()) {
    return {};
  }
  auto changed = config;
  for (const auto& each : joining) {
    changed.nodes.push_back({.name = each.name, .url = each.url, .agent_url = each.agent_url});
  }
  VERGER_RETURN_IF_ERROR(registry.check_update(std::move(changed)));
  return {};
}

}  // namespace verger::controller
