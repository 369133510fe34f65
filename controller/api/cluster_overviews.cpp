#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/routes.h"
#include "controller/api/views.h"
#include "controller/cluster/gather.h"
#include "engine/base/clock.h"

// GET /clusters: one line each, with the cluster's runs and, where requested, its nodes.
namespace verger::controller {

using nlohmann::json;

namespace {

/// A list of all clusters does not wait for the slowest node of the slowest one.
constexpr std::chrono::milliseconds kLookLimit{3'000};
/// Clusters that are looked at for one page.
constexpr std::size_t kMostLooks = 100;

json look_view(const planner::ClusterSnapshot& snapshot) {
  const auto up = std::ranges::count_if(
      snapshot.nodes, [](const auto& node) { return node.answered && node.alive; });
  const auto* leader = snapshot.leader();
  return {{"taken_at", format_ticks(snapshot.taken_at)},
          {"leader", leader == nullptr ? json() : json(leader->name)},
          {"nodes_up", up},
          {"nodes_down", static_cast<std::int64_t>(snapshot.nodes.size()) - up}};
}

/// What the runs of a cluster show of it; `runs` are newest first.
struct LastRuns {
  std::shared_ptr<const RunSummary> active;
  std::shared_ptr<const RunSummary> succeeded;
};

std::map<std::string, LastRuns> last_runs(
    const std::vector<std::shared_ptr<const RunSummary>>& runs) {
  std::map<std::string, LastRuns> out;
  for (const auto& run : runs) {
    auto& of_cluster = out[run->cluster];
    if (!has_ended(run->status) && !of_cluster.active) {
      of_cluster.active = run;
    } else if (run->status == RunStatus::kDone && !of_cluster.succeeded) {
      of_cluster.succeeded = run;
    }
  }
  return out;
}

net::awaitable<http::Response> list_clusters(const ApiParts& parts, Call call) {
  const auto& target = call.target;
  const auto list = parts.registry.list();
  const auto runs = last_runs(parts.executor.runs(""));
  std::vector<std::string> keys;
  keys.reserve(list.size());
  for (const auto& config : list) {
    keys.push_back(config.name);
  }
  std::vector<ClusterConfig> shown;
  auto answer = paged_answer("clusters", keys, target, [&](std::size_t i) -> Result<json> {
    shown.push_back(list[i]);
    auto out = views::cluster(list[i]);
    const auto found = runs.find(list[i].name);
    const auto of_cluster = found == runs.end() ? LastRuns{} : found->second;
    out["active_run"] = of_cluster.active
                            ? json{{"id", of_cluster.active->id},
                                   {"state", to_string(of_cluster.active->status)},
                                   {"started_at", format_ticks(of_cluster.active->started_at)}}
                            : json();
    out["last_success"] = of_cluster.succeeded && of_cluster.succeeded->ended_at
                              ? json{{"run", of_cluster.succeeded->id},
                                     {"finished_at", format_ticks(*of_cluster.succeeded->ended_at)}}
                              : json();
    return out;
  });
  if (target.parameter("look").value_or("") != "true" || answer.status != 200) {
    co_return answer;
  }
  if (shown.size() > kMostLooks) {
    co_return problem(400, "bad_request",
                      fmt::format("look=true takes a limit of at most {}", kMostLooks));
  }
  std::vector<net::awaitable<planner::ClusterSnapshot>> looks;
  looks.reserve(shown.size());
  for (auto& config : shown) {
    looks.push_back(parts.observer.take(std::move(config), Depth::kGossip, kLookLimit));
  }
  const auto snapshots = co_await gather(std::move(looks));
  auto body = json::parse(answer.body);
  auto& clusters = body["clusters"];
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    clusters[i]["look"] = look_view(snapshots[i]);
  }
  co_return json_answer(200, body);
}

}  // namespace

std::span<const Route> cluster_overview_routes() {
  static constexpr Route kRoutes[] = {
      {"GET", "/clusters", ApiRole::kViewer, "listClusters", "The registered clusters", 200, "",
       "Clusters", "limit cursor look", list_clusters},
  };
  return kRoutes;
}

}  // namespace verger::controller
