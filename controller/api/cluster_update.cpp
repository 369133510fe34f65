#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/members.h"
#include "controller/api/routes.h"
#include "controller/api/views.h"

// PATCH /clusters/{name}: changes a registration in place; runs, plans and history stay.
namespace verger::controller {

using nlohmann::json;

namespace {

/// Changes what the body names. Error: kInvalidArgument.
Result<ClusterConfig> changed(ClusterConfig config, const json& body) {
  Members members(body);
  config.credentials = members.text("credentials", config.credentials);
  config.trusted_roots = members.text("trusted_roots", config.trusted_roots);
  for (auto& [label, value] : members.texts("labels")) {
    config.labels[label] = value;
  }
  const auto* unset = members.array("remove_labels");
  const auto* nodes = members.array("nodes");
  members.text("reason");  // for the audit
  VERGER_RETURN_IF_ERROR(members.finish());
  for (std::size_t i = 0; unset != nullptr && i < unset->size(); ++i) {
    const auto label = (*unset)[i].is_string() ? (*unset)[i].get<std::string>() : std::string();
    if (config.labels.erase(label) == 0) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("cluster {} has no label \"{}\"", config.name, label)};
    }
  }
  if (nodes == nullptr) {
    return config;
  }
  config.nodes.clear();
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    const auto& node = (*nodes)[i];
    if (!node.is_object() || !node.contains("node")) {
      return Error{Errc::kInvalidArgument,
                   "each member of nodes must be an object with a member \"node\", the URL"};
    }
    Members own(node, fmt::format("nodes[{}]", i));
    config.nodes.push_back(
        {.name = own.text("name"), .url = own.text("node"), .agent_url = own.text("agent")});
    VERGER_RETURN_IF_ERROR(own.finish());
  }
  return config;
}

http::Response run_is_active(const std::string& cluster, const RunState& run) {
  return problem(409, "run_active",
                 fmt::format("cluster {} has run {}, which has not ended: its nodes cannot be "
                             "changed before; cancel it first",
                             cluster, run.id));
}

net::awaitable<Result<http::Response>> update_cluster(const ApiParts& parts, Call call) {
  const auto name = call.named("name");
  const auto parsed = parse_body(call.body());
  const auto before = parts.registry.find(name);
  if (!parsed || !before) {
    co_return problem_of(parsed ? before.error() : parsed.error());
  }
  auto config = changed(*before, *parsed);
  if (config) {
    config = parts.registry.check_update(*std::move(config));
  }
  if (!config) {
    co_return config.error().code == Errc::kConflict
        ? problem(409, "cluster_exists", config.error().message)
        : problem_of(config.error());
  }
  const bool other_nodes = config->nodes != before->nodes;
  if (other_nodes && !parts.executor.active_runs(name).empty()) {
    co_return run_is_active(name, *parts.executor.active_runs(name).front());
  }
  std::optional<planner::ClusterSnapshot> seen;
  if (other_nodes || config->credentials != before->credentials ||
      config->trusted_roots != before->trusted_roots) {
    if (parts.shared_journal) {
      if (const auto fenced = check_fencing(*config); !fenced) {
        co_return problem(422, "no_fencing", fenced.error().message + "; nothing was changed");
      }
    }
    if (const auto sent = parts.observer.check_credentials(*config); !sent) {
      co_return problem(422, "credentials_refused", sent.error().message + "; nothing was changed");
    }
    seen = co_await parts.observer.take(*config);
    if (std::ranges::none_of(seen->nodes, &planner::NodeSnapshot::answered)) {
      co_return problem(
          422, "cluster_unreachable",
          fmt::format("no node of cluster {} answered, and nothing was changed. Of {}: {}", name,
                      seen->nodes.front().name, seen->nodes.front().problem));
    }
    if (!seen->wrong_cluster.empty()) {
      co_return problem(422, "wrong_cluster", seen->wrong_cluster + "; nothing was changed");
    }
    // The look took its time.
    if (const auto now = parts.registry.find(name); !now || *now != *before) {
      co_return problem(409, "changed_meanwhile",
                        fmt::format("cluster {} was changed meanwhile; look at it "
                                    "with `verger cluster show {}` and try again",
                                    name, name));
    }
    if (other_nodes && !parts.executor.active_runs(name).empty()) {
      co_return run_is_active(name, *parts.executor.active_runs(name).front());
    }
  }
  VERGER_CO_RETURN_IF_ERROR(parts.registry.update(*std::move(config)));
  VERGER_CO_TRY(const auto stored, parts.registry.find(name));
  auto answer = views::cluster(stored);
  if (seen) {
    answer["snapshot"] = views::snapshot(*seen);  // members that were not named are in it
  }
  co_return json_answer(200, answer);
}

}  // namespace

std::span<const Route> cluster_update_routes() {
  static constexpr Route kRoutes[] = {
      {"PATCH", "/clusters/{name}", ApiRole::kAdmin, "updateCluster",
       "Change nodes, credentials, roots or labels in place", 200, "ClusterChanges", "Cluster", "",
       update_cluster},
  };
  return kRoutes;
}

}  // namespace verger::controller
