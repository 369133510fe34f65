#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api.h"
#include "controller/api/members.h"
#include "controller/api/views.h"
#include "controller/cluster/identity.h"

// /clusters, without their plans, pauses and schedules.
namespace verger::controller {

using nlohmann::json;

namespace {

json view_of(const planner::ClusterSnapshot& snapshot, ControllerEpoch epoch) {
  auto out = views::snapshot(snapshot);
  if (const auto newer = newer_controller(snapshot, epoch); !newer.empty()) {
    out["warnings"].push_back(fmt::format("{}; {}", newer, kNewerControllerHint));
  }
  return out;
}

}  // namespace

net::awaitable<http::Response> Api::clusters(http::Request request, http::Target target,
                                             std::string by) {
  const auto& path = target.segments;
  if (path.size() == 3) {
    if (request.method == "POST") {
      co_return co_await add_cluster(std::move(request.body));
    }
    if (request.method != "GET") {
      co_return wrong_method(request, "GET, POST");
    }
    co_return co_await list_clusters(std::move(target));
  }
  const auto& name = path[3];
  if (path.size() == 4 && request.method == "DELETE") {
    for (const auto& run : parts_.executor.active_runs(name)) {
      co_return problem(409, "run_active",
                        fmt::format("cluster {} has run {}, which has not ended; cancel it first",
                                    name, run->id));
    }
    if (auto removed = parts_.registry.remove(name); !removed) {
      co_return problem_of(removed.error());
    }
    http::Response response;
    response.status = 204;
    co_return response;
  }
  if (path.size() == 4 && request.method == "GET") {
    const auto config = parts_.registry.find(name);
    if (!config) {
      co_return problem_of(config.error());
    }
    const auto snapshot = co_await parts_.executor.observe(name);
    if (!snapshot) {
      co_return problem_of(snapshot.error());
    }
    auto body = views::cluster(*config);
    body["snapshot"] = view_of(*snapshot, parts_.epoch);
    co_return json_answer(200, body);
  }
  if (path.size() == 4 && request.method == "PATCH") {
    co_return co_await update_cluster(name, std::move(request.body));
  }
  if (path.size() == 4) {
    co_return wrong_method(request, "GET, PATCH, DELETE");
  }
  if (path.size() == 5 && path[4] == "schedule") {
    co_return request.method == "GET" ? schedule(name, target) : wrong_method(request, "GET");
  }
  if (path.size() == 5 && (path[4] == "pause" || path[4] == "resume")) {
    if (request.method != "POST") {
      co_return wrong_method(request, "POST");
    }
    co_return co_await cluster_intent(name, path[4], std::move(request.body), std::move(by));
  }
  if (path.size() == 5 && path[4] == "plans") {
    if (request.method == "POST") {
      co_return co_await make_plan(name, std::move(request.body), std::move(by));
    }
    if (request.method != "GET") {
      co_return wrong_method(request, "GET, POST");
    }
    if (const auto config = parts_.registry.find(name); !config) {
      co_return problem_of(config.error());
    }
    const auto list = parts_.executor.plans(name);
    std::vector<std::string> keys;
    keys.reserve(list.size());
    for (const auto& stored : list) {
      keys.push_back(stored.hash);
    }
    co_return paged_answer("plans", keys, target, [&](std::size_t i) -> Result<json> {
      VERGER_TRY(const auto plan, parts_.executor.find_plan(keys[i]));
      auto out = views::plan(plan);
      out["awaits_approval_of"] = awaiting_policy(name, plan.plan->hash);
      return out;
    });
  }
  co_return no_route(request);
}

net::awaitable<http::Response> Api::add_cluster(std::string body) {
  const auto parsed = parse_body(body);
  if (!parsed) {
    co_return problem_of(parsed.error());
  }
  ClusterConfig config;
  Members members(*parsed);
  config.name = members.text("name");
  config.credentials = members.text("credentials");
  config.trusted_roots = members.text("trusted_roots", members.text("trustedRoots"));
  config.labels = members.texts("labels");
  const auto* nodes = members.array("nodes");
  members.refuse_others();
  if (members.wrong()) {
    co_return problem_of(*members.wrong());
  }
  for (std::size_t i = 0; nodes != nullptr && i < nodes->size(); ++i) {
    const auto& node = (*nodes)[i];
    if (!node.is_object() || !node.contains("node")) {
      co_return problem(400, "bad_request",
                        "each member of nodes must be an object with a member \"node\", the URL");
    }
    Members own(node, fmt::format("nodes[{}]", i));
    config.nodes.push_back(
        {.name = own.text("name"), .url = own.text("node"), .agent_url = own.text("agent")});
    own.refuse_others();
    if (own.wrong()) {
      co_return problem_of(*own.wrong());
    }
  }
  auto checked = parts_.registry.check(std::move(config));
  if (!checked) {
    co_return checked.error().code == Errc::kConflict
        ? problem(409, "cluster_exists", checked.error().message)
        : problem_of(checked.error());
  }
  config = *std::move(checked);
  if (parts_.shared_journal) {
    if (const auto fenced = check_fencing(config); !fenced) {
      co_return problem(422, "no_fencing", fenced.error().message + "; nothing was registered");
    }
  }
  if (const auto sent = parts_.observer.check_credentials(config); !sent) {
    co_return problem(422, "credentials_refused",
                      sent.error().message + "; nothing was registered");
  }
  const auto seen = co_await parts_.observer.take(config);
  if (std::ranges::none_of(seen.nodes, &planner::NodeSnapshot::answered) && !seen.nodes.empty()) {
    co_return problem(
        422, "cluster_unreachable",
        fmt::format("no node of cluster {} answered, and nothing was registered. Of {}: {}",
                    config.name, seen.nodes.front().name, seen.nodes.front().problem));
  }
  if (!seen.wrong_cluster.empty()) {
    co_return problem(422, "wrong_cluster", seen.wrong_cluster + "; nothing was registered");
  }
  const auto name = config.name;
  config.identity = identity_of(seen);
  if (config.identity.empty()) {
    config.epoch = epoch_of(seen);
  }
  if (auto added = parts_.registry.add(std::move(config)); !added) {
    co_return added.error().code == Errc::kConflict
        ? problem(409, "cluster_exists", added.error().message)
        : problem_of(added.error());
  }
  const auto stored = parts_.registry.find(name);
  if (!stored) {
    co_return problem_of(stored.error());
  }
  auto answer = views::cluster(*stored);
  answer["snapshot"] = view_of(seen, parts_.epoch);
  co_return json_answer(201, answer);
}

}  // namespace verger::controller
