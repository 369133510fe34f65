#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/members.h"
#include "controller/api/routes.h"
#include "controller/api/views.h"
#include "controller/cluster/identity.h"
#include "controller/executor/atomic_stage.h"
#include "controller/scheduler/next_times.h"
#include "engine/base/number_from_text.h"

// /clusters, their pauses and schedules; listing them is in cluster_overviews.cpp, changing one in
// cluster_update.cpp.
namespace verger::controller {

using nlohmann::json;

namespace {

/// Of each kind in one answer of the schedule: those of a month, of some policies.
constexpr std::int64_t kMostTimes = 500;

json view_of(const planner::ClusterSnapshot& snapshot, ControllerEpoch epoch) {
  auto out = views::snapshot(snapshot);
  if (const auto newer = newer_controller(snapshot, epoch); !newer.empty()) {
    out["warnings"].push_back(fmt::format("{}; {}", newer, kNewerControllerHint));
  }
  return out;
}

net::awaitable<Result<http::Response>> get_cluster(const ApiParts& parts, Call call) {
  const auto name = call.named("name");
  VERGER_CO_TRY(const auto config, parts.registry.find(name));
  VERGER_CO_TRY(const auto snapshot, co_await parts.executor.observe(name));
  auto body = views::cluster(config);
  body["snapshot"] = view_of(snapshot, parts.epoch);
  co_return json_answer(200, body);
}

net::awaitable<Result<http::Response>> add_cluster(const ApiParts& parts, Call call) {
  VERGER_CO_TRY(const auto parsed, parse_body(call.body()));
  ClusterConfig config;
  Members members(parsed);
  config.name = members.text("name");
  config.credentials = members.text("credentials");
  config.trusted_roots = members.text("trusted_roots", members.text("trustedRoots"));
  config.labels = members.texts("labels");
  const auto* nodes = members.array("nodes");
  VERGER_CO_RETURN_IF_ERROR(members.finish());
  for (std::size_t i = 0; nodes != nullptr && i < nodes->size(); ++i) {
    const auto& node = (*nodes)[i];
    if (!node.is_object() || !node.contains("node")) {
      co_return problem(400, "bad_request",
                        "each member of nodes must be an object with a member \"node\", the URL");
    }
    Members own(node, fmt::format("nodes[{}]", i));
    config.nodes.push_back(
        {.name = own.text("name"), .url = own.text("node"), .agent_url = own.text("agent")});
    VERGER_CO_RETURN_IF_ERROR(own.finish());
  }
  auto checked = parts.registry.check(std::move(config));
  if (!checked) {
    co_return checked.error().code == Errc::kConflict
        ? problem(409, "cluster_exists", checked.error().message)
        : problem_of(checked.error());
  }
  config = *std::move(checked);
  if (parts.shared_journal) {
    if (const auto fenced = check_fencing(config); !fenced) {
      co_return problem(422, "no_fencing", fenced.error().message + "; nothing was registered");
    }
  }
  if (const auto sent = parts.observer.check_credentials(config); !sent) {
    co_return problem(422, "credentials_refused",
                      sent.error().message + "; nothing was registered");
  }
  const auto seen = co_await parts.observer.take(config);
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
  if (auto added = parts.registry.add(std::move(config)); !added) {
    co_return added.error().code == Errc::kConflict
        ? problem(409, "cluster_exists", added.error().message)
        : problem_of(added.error());
  }
  VERGER_CO_TRY(const auto stored, parts.registry.find(name));
  auto answer = views::cluster(stored);
  answer["snapshot"] = view_of(seen, parts.epoch);
  co_return json_answer(201, answer);
}

http::Response remove_cluster(const ApiParts& parts, const Call& call) {
  const auto name = call.named("name");
  for (const auto& run : parts.executor.active_runs(name)) {
    return problem(
        409, "run_active",
        fmt::format("cluster {} has run {}, which has not ended; cancel it first", name, run->id));
  }
  const auto removed = parts.registry.remove(name);
  return removed ? no_content() : problem_of(removed.error());
}

Result<http::Response> get_schedule(const ApiParts& parts, const Call& call) {
  const auto cluster = call.named("name");
  VERGER_TRY(const auto config, parts.registry.find(cluster));
  VERGER_TRY(const auto mine, Zone::find(call.target.parameter("zone").value_or("UTC")));
  const auto count = number_from_text<std::int64_t>(call.target.parameter("count").value_or("10"));
  if (!count || *count < 1 || *count > kMostTimes) {
    return Error{Errc::kInvalidArgument, fmt::format("count must be 1 to {}", kMostTimes)};
  }
  const auto now = to_instant(parts.clock.now());
  auto times = json::array();
  for (const auto& each : next_times(parts.book, config, now, static_cast<std::size_t>(*count))) {
    const bool opens = each.kind == NextTime::Kind::kOpens;
    times.push_back(
        {{"kind", opens ? "opens" : "due"},
         {"policy", each.policy},
         {"at", format_ticks(to_ticks(each.at))},
         {"yours", mine.format(each.at)},
         {"policys", each.zone.format(each.at)},
         {"zone", each.zone.name()},
         {"until", each.until ? json(format_ticks(to_ticks(*each.until))) : json()},
         {"until_yours", each.until ? json(mine.format(*each.until)) : json()},
         {"length_seconds", each.until ? json((*each.until - each.at).count()) : json()},
         {"inside", each.inside}});
  }
  auto policies = json::array();
  for (const auto& stored : parts.book.list()) {
    if (stored.policy.selects(config)) {
      const auto state = parts.scheduler.state(stored.policy.name, cluster);
      policies.push_back({{"policy", stored.policy.name},
                          {"enabled", stored.policy.enabled},
                          {"outcome", state.outcome},
                          {"late", state.late},
                          {"too_old", state.too_old},
                          {"reason", state.reason},
                          {"waiting", state.waiting}});
    }
  }
  return json_answer(200, {{"cluster", cluster},
                           {"now", format_ticks(parts.clock.now())},
                           {"zone", mine.name()},
                           {"policies", std::move(policies)},
                           {"times", std::move(times)}});
}

/// What the request for a pause or its end says.
struct ClusterIntent {
  std::string reason;
  std::string mode;
  std::string until;
};

Result<ClusterIntent> cluster_intent_of(const Call& call, bool pauses) {
  VERGER_TRY(const auto parsed, parse_body(call.body()));
  Members members(parsed);
  ClusterIntent out{
      .reason = members.text("reason", "asked by " + call.by()), .mode = {}, .until = {}};
  if (pauses) {
    out.mode = members.text("mode", "policy");
    out.until = members.text("until");
  }
  VERGER_RETURN_IF_ERROR(members.finish());
  return out;
}

/// What its run has to finish before it pauses; empty: nothing.
std::string notice_of(const ApiParts& parts, const std::string& cluster) {
  for (const auto& run : parts.executor.active_runs(cluster)) {
    if (auto notice = pause_notice(*run, parts.clock.now()); !notice.empty()) {
      return fmt::format("run {}: {}", run->id.substr(0, 12), notice);
    }
  }
  return {};
}

http::Response after_intent(const ApiParts& parts, const Result<void>& outcome,
                            const std::string& cluster) {
  if (!outcome) {
    return refusal_of(parts, outcome.error(), cluster);
  }
  const auto config = parts.registry.find(cluster);
  if (!config) {
    return problem_of(config.error());
  }
  auto body = views::cluster(*config);
  if (auto notice = notice_of(parts, cluster); !notice.empty()) {
    body["notice"] = std::move(notice);
  }
  return json_answer(202, body);
}

Result<http::Response> pause_cluster(const ApiParts& parts, const Call& call) {
  const auto cluster = call.named("name");
  VERGER_TRY(const auto wanted, cluster_intent_of(call, /*pauses=*/true));
  const auto mode = parse_pause_mode(wanted.mode);
  if (!mode) {
    return problem(400, "bad_request", "mode takes policy, drain, now");
  }
  std::optional<Ticks> until;
  if (!wanted.until.empty()) {
    VERGER_TRY(const auto parsed, parse_ticks(wanted.until));
    if (parsed <= parts.clock.now()) {
      return problem(400, "bad_request", fmt::format("until {} is in the past", wanted.until));
    }
    until = parsed;
  }
  return after_intent(parts,
                      parts.executor.pause_cluster(cluster, call.by(), wanted.reason, *mode, until),
                      cluster);
}

net::awaitable<Result<http::Response>> resume_cluster(const ApiParts& parts, Call call) {
  const auto cluster = call.named("name");
  VERGER_CO_TRY(const auto wanted, cluster_intent_of(call, /*pauses=*/false));
  co_return after_intent(parts, co_await parts.executor.resume_cluster(cluster, call.by()),
                         cluster);
}

}  // namespace

std::span<const Route> cluster_routes() {
  using enum ApiRole;
  static constexpr Route kRoutes[] = {
      {"POST", "/clusters", kAdmin, "addCluster", "Register a cluster", 201, "NewCluster",
       "Cluster", "", add_cluster},
      {"GET", "/clusters/{name}", kViewer, "getCluster", "One cluster as it is now", 200, "",
       "Cluster", "", get_cluster},
      {"DELETE", "/clusters/{name}", kAdmin, "removeCluster", "Forget a cluster", 204, "", "", "",
       remove_cluster},
      {"GET", "/clusters/{name}/schedule", kViewer, "getSchedule", "Next openings and due times",
       200, "", "Schedule", "zone count", get_schedule},
      {"POST", "/clusters/{name}/pause", kOperator, "pauseCluster",
       "Start nothing, pause what runs", 202, "Pause", "Cluster", "", pause_cluster},
      {"POST", "/clusters/{name}/resume", kOperator, "resumeCluster", "End a cluster's pause", 202,
       "Empty", "Cluster", "", resume_cluster},
  };
  return kRoutes;
}

}  // namespace verger::controller
