#include "controller/api/api.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/event_feed.h"
#include "controller/api/metrics.h"
#include "controller/api/routes.h"
#include "controller/api/views.h"
#include "controller/executor/plan_json.h"
#include "engine/base/digest.h"

namespace verger::controller {
namespace {

using nlohmann::json;

http::Response no_route(const http::Request& request) {
  return problem(404, "not_found",
                 fmt::format("{} {}: no such route; docs/formats/controller-api.md lists them",
                             request.method, request.target));
}

http::Response wrong_method(const http::Request& request, std::string_view allowed) {
  auto response = problem(
      405, "bad_request",
      fmt::format("{} does not take {}; it takes {}", request.target, request.method, allowed));
  response.headers.set("Allow", std::string(allowed));
  return response;
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

/// An empty body is an empty object.
Result<json> parse_body(const std::string& body) {
  auto parsed = body.empty() ? json::object() : json::parse(body, nullptr, false);
  if (!parsed.is_object()) {
    return Error{Errc::kInvalidArgument, "the body is not a JSON object"};
  }
  return parsed;
}

/// The wire's names for what planner::Policy holds.
Result<planner::Policy> policy_of(const json& body, planner::Policy policy) {
  policy.operation = body.value("operation", std::string());
  if (policy.operation != "scavenge") {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("operation \"{}\" is not known; known are: scavenge", policy.operation)};
  }
  const auto parameters = body.value("parameters", json::object());
  auto& scavenge = policy.scavenge;
  for (const auto& [name, value] : parameters.items()) {
    const auto number = [&](std::int32_t& into) -> Result<void> {
      if (!value.is_number_integer()) {
        return Error{Errc::kInvalidArgument, fmt::format("parameter {} must be an integer", name)};
      }
      into = value.get<std::int32_t>();
      return {};
    };
    if (name == "threads") {
      VERGER_CHECK(number(scavenge.threads));
    } else if (name == "threshold") {
      VERGER_CHECK(number(scavenge.threshold));
    } else if (name == "throttle_percent") {
      VERGER_CHECK(number(scavenge.throttle_percent));
    } else if (name == "strategy") {
      const auto text = value.is_string() ? value.get<std::string>() : std::string();
      if (text == to_string(planner::Strategy::kRolling)) {
        scavenge.strategy = planner::Strategy::kRolling;
      } else if (text == to_string(planner::Strategy::kFollowersOnly)) {
        scavenge.strategy = planner::Strategy::kFollowersOnly;
      } else if (text == to_string(planner::Strategy::kConcurrent)) {
        scavenge.strategy = planner::Strategy::kConcurrent;
      } else {
        return Error{Errc::kInvalidArgument,
                     fmt::format("strategy \"{}\" is not known; known are: {}, {}, {}", text,
                                 to_string(planner::Strategy::kRolling),
                                 to_string(planner::Strategy::kFollowersOnly),
                                 to_string(planner::Strategy::kConcurrent))};
      }
    } else {
      return Error{Errc::kInvalidArgument, fmt::format("parameter {} is not known", name)};
    }
  }
  return policy;
}

}  // namespace

http::Handler Api::handler() {
  return [this](http::Request request) { return answer(std::move(request)); };
}

net::awaitable<http::Response> Api::answer(http::Request request) {
  const auto target = http::parse_target(request.target);
  if (!target) {
    co_return problem(400, "bad_request", target.error().message);
  }
  const auto& path = target->segments;
  const bool scrape = path.size() == 1 && path[0] == "metrics" && request.method == "GET";
  if (!scrape && (path.size() < 3 || path[0] != "api" || path[1] != "v1")) {
    co_return no_route(request);
  }
  auto needed = ApiRole::kViewer;
  const Route* route = nullptr;
  if (!scrape) {
    std::vector<std::string_view> methods;
    route = find_route(request.method, std::span(path).subspan(2), methods);
    if (route == nullptr) {
      co_return methods.empty()
          ? no_route(request)
          : wrong_method(request, fmt::format("{}", fmt::join(methods, ", ")));
    }
    needed = route->role;
  }
  Principal principal;
  if (needed != ApiRole::kNobody) {
    const auto who = parts_.access.who(request);
    if (!who) {
      auto refused = problem_of(who.error());
      refused.headers.set("WWW-Authenticate", "Bearer");
      co_return refused;
    }
    principal = *who;
    if (principal.role < needed) {
      co_return problem(
          403, "forbidden",
          fmt::format("{} has the role {}; {} {} needs {}", principal.name,
                      to_string(principal.role), request.method, target->path, to_string(needed)));
    }
  }
  if (scrape) {
    co_return metrics_answer(parts_);
  }
  if (request.method == "GET" || route->id == "validatePolicy" || route->id == "diffPolicy") {
    co_return co_await dispatch(std::move(request), *target, principal.name);
  }
  std::string key_stream;
  if (const auto key = request.headers.get("Idempotency-Key"); key && request.method == "POST") {
    if (key->empty() || key->size() > 200) {
      co_return problem(400, "bad_request", "Idempotency-Key takes 1 to 200 characters");
    }
    key_stream =
        "idempotency/" + to_hex(sha256(as_bytes(fmt::format("{}\n{}", principal.name, *key))));
    if (auto known = known_answer(request, key_stream)) {
      co_return *std::move(known);
    }
  }
  const auto asked = parts_.access.asked(principal, request, route->id);
  if (!asked) {
    co_return problem_of(asked.error());  // what cannot be put on record is not done
  }
  if (key_stream.empty()) {
    auto response = co_await dispatch(std::move(request), *target, principal.name);
    parts_.access.answered(*asked, response.status);
    co_return response;
  }
  under_way_.insert(key_stream);
  const auto original = request;
  auto response = co_await dispatch(std::move(request), *target, principal.name);
  under_way_.erase(key_stream);
  parts_.access.answered(*asked, response.status);
  keep_answer(original, key_stream, response);
  co_return response;
}

net::awaitable<http::Response> Api::dispatch(http::Request request, http::Target target,
                                             std::string by) {
  const auto& path = target.segments;
  if (path[2] == "clusters") {
    co_return co_await clusters(std::move(request), target, std::move(by));
  }
  if (path[2] == "plans") {
    co_return co_await plans(std::move(request), target, std::move(by));
  }
  if (path[2] == "runs") {
    co_return co_await runs(std::move(request), target, std::move(by));
  }
  if (path[2] == "policies") {
    co_return policies(request, target, by);
  }
  if (path[2] == "tokens") {
    co_return tokens(request, target, by);
  }
  if (path[2] == "audit") {
    co_return audit(target);
  }
  if (path[2] == "events" && path.size() == 3) {
    co_return co_await events(std::move(request), target);
  }
  if (path[2] == "openapi.json") {
    co_return json_answer(200, openapi_document(VERGER_VERSION));
  }
  if (path[2] == "health" && path.size() == 3) {
    co_return json_answer(200, {{"status", "ok"},
                                {"version", VERGER_VERSION},
                                {"controller_epoch", parts_.epoch.value()}});
  }
  co_return no_route(request);
}

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
    auto list = json::array();
    for (const auto& config : parts_.registry.list()) {
      list.push_back(views::cluster(config));
    }
    co_return json_answer(200, {{"clusters", std::move(list)}});
  }
  const auto& name = path[3];
  if (path.size() == 4 && request.method == "DELETE") {
    for (const auto& run : parts_.executor.runs(name)) {
      if (!has_ended(run->status)) {
        co_return problem(409, "run_active",
                          fmt::format("cluster {} has run {}, which has not ended; cancel it first",
                                      name, run->id));
      }
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
    body["snapshot"] = views::snapshot(*snapshot);
    co_return json_answer(200, body);
  }
  if (path.size() == 4) {
    co_return wrong_method(request, "GET, DELETE");
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
    auto list = json::array();
    for (const auto& plan : parts_.executor.plans(name)) {
      list.push_back(views::plan(plan));
    }
    co_return json_answer(200, {{"plans", std::move(list)}});
  }
  co_return no_route(request);
}

net::awaitable<http::Response> Api::add_cluster(std::string body) {
  const auto parsed = parse_body(body);
  if (!parsed) {
    co_return problem_of(parsed.error());
  }
  ClusterConfig config;
  config.name = parsed->value("name", std::string());
  config.credentials = parsed->value("credentials", std::string());
  config.trusted_roots =
      parsed->value("trusted_roots", parsed->value("trustedRoots", std::string()));
  config.labels = parsed->value("labels", std::map<std::string, std::string>());
  const auto nodes = parsed->value("nodes", json::array());
  for (const auto& node : nodes) {
    if (!node.is_object() || !node.contains("node")) {
      co_return problem(400, "bad_request",
                        "each member of nodes must be an object with a member \"node\", the URL");
    }
    config.nodes.push_back({.name = node.value("name", std::string()),
                            .url = node.value("node", std::string()),
                            .agent_url = node.value("agent", std::string())});
  }
  auto checked = parts_.registry.check(std::move(config));
  if (!checked) {
    co_return checked.error().code == Errc::kConflict
        ? problem(409, "cluster_exists", checked.error().message)
        : problem_of(checked.error());
  }
  config = *std::move(checked);
  const auto seen = co_await parts_.observer.take(config);
  if (std::ranges::none_of(seen.nodes, &planner::NodeSnapshot::answered) && !seen.nodes.empty()) {
    co_return problem(
        422, "cluster_unreachable",
        fmt::format("no node of cluster {} answered ({}: {}); nothing was registered. "
                    "Check the URLs and that the nodes run",
                    config.name, seen.nodes.front().url, seen.nodes.front().problem));
  }
  if (!seen.wrong_cluster.empty()) {
    co_return problem(422, "wrong_cluster", seen.wrong_cluster + "; nothing was registered");
  }
  const auto name = config.name;
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
  answer["snapshot"] = views::snapshot(seen);
  co_return json_answer(201, answer);
}

net::awaitable<http::Response> Api::make_plan(std::string cluster, std::string body,
                                              std::string by) {
  const auto parsed = parse_body(body);
  if (!parsed) {
    co_return problem_of(parsed.error());
  }
  const auto policy = policy_of(*parsed, parts_.policy);
  if (!policy) {
    co_return problem_of(policy.error());
  }
  const auto made = co_await parts_.executor.make_plan(cluster, *policy, std::move(by));
  if (!made) {
    co_return problem_of(made.error());
  }
  if (!made->has_value()) {
    auto refusals = json::array();
    std::string detail = fmt::format("no plan for cluster {}:", cluster);
    for (const auto& refusal : made->error().refusals) {
      refusals.push_back(views::refusal(refusal));
      detail += fmt::format("\n  {}{}{}{}", refusal.node, refusal.node.empty() ? "" : ": ",
                            refusal.message, refusal.hint.empty() ? "" : "; " + refusal.hint);
    }
    co_return problem(422, "plan_refused", detail, {{"refusals", std::move(refusals)}});
  }
  co_return json_answer(201, views::plan(**made));
}

net::awaitable<http::Response> Api::plans(http::Request request, http::Target target,
                                          std::string by) {
  const auto& path = target.segments;
  if (path.size() == 4) {
    if (request.method != "GET") {
      co_return wrong_method(request, "GET");
    }
    const auto plan = parts_.executor.find_plan(path[3]);
    co_return plan ? json_answer(200, views::plan(*plan)) : problem_of(plan.error());
  }
  if (path.size() == 5 && path[4] == "apply") {
    if (request.method != "POST") {
      co_return wrong_method(request, "POST");
    }
    const auto run = co_await parts_.executor.apply(path[3], std::move(by));
    if (!run) {
      const auto& refused = run.error();
      if (refused.error.code == Errc::kConflict) {
        co_return problem(409, "stale_plan", refused.error.message,
                          {{"differences", refused.differences}});
      }
      co_return problem_of(refused.error);
    }
    const auto state = parts_.executor.find_run(*run);
    co_return state ? json_answer(202, views::run(**state)) : problem_of(state.error());
  }
  co_return no_route(request);
}

net::awaitable<http::Response> Api::runs(http::Request request, http::Target target,
                                         std::string by) {
  const auto& path = target.segments;
  if (path.size() == 3 || path.size() == 4) {
    if (request.method != "GET") {
      co_return wrong_method(request, "GET");
    }
    if (path.size() == 4) {
      const auto run = parts_.executor.find_run(path[3]);
      if (!run) {
        co_return problem_of(run.error());
      }
      auto body = views::run(**run);
      body["expected_end"] = views::expected_end(**run, parts_.clock.now());
      if (const auto config = parts_.registry.find((*run)->cluster)) {
        const auto hours =
            parts_.book.hours(*config, (*run)->plan->policy.name, parts_.clock.now());
        body["hours"] =
            hours ? json{{"open", hours->open},
                         {"until", hours->until ? json(format_ticks(*hours->until)) : json()}}
                  : json();
      }
      co_return json_answer(200, body);
    }
    const std::string cluster(target.parameter("cluster").value_or(""));
    if (!cluster.empty()) {
      if (const auto config = parts_.registry.find(cluster); !config) {
        co_return problem_of(config.error());
      }
    }
    auto list = json::array();
    for (const auto& run : parts_.executor.runs(cluster)) {
      list.push_back(views::run(*run));
    }
    co_return json_answer(200, {{"runs", std::move(list)}});
  }
  if (path.size() == 5) {
    if (request.method != "POST") {
      co_return wrong_method(request, "POST");
    }
    co_return co_await run_intent(path[3], path[4], std::move(request.body), std::move(by));
  }
  co_return no_route(request);
}

net::awaitable<http::Response> Api::run_intent(std::string id, std::string intent, std::string body,
                                               std::string by) {
  const auto parsed = parse_body(body);
  if (!parsed) {
    co_return problem_of(parsed.error());
  }
  const auto found = parts_.executor.find_run(id);
  if (!found) {
    co_return problem_of(found.error());
  }
  const auto run = (*found)->id;
  const auto reason = parsed->value("reason", "asked by " + by);
  Result<void> outcome;
  if (intent == "pause") {
    const auto mode = parse_pause_mode(parsed->value("mode", std::string("policy")));
    if (!mode) {
      co_return problem(400, "bad_request", "mode takes policy, drain, now");
    }
    outcome = parts_.executor.pause(run, by, reason, *mode);
  } else if (intent == "cancel") {
    outcome = parts_.executor.cancel(run, by, reason);
  } else if (intent == "resume") {
    outcome = co_await parts_.executor.resume(run, by);
  } else if (intent == "skip") {
    const auto node = parsed->value("node", std::string());
    if (node.empty()) {
      co_return problem(400, "bad_request", "the body needs a member \"node\"");
    }
    outcome = parts_.executor.skip_node(run, node, by, reason);
  } else {
    co_return problem(404, "not_found",
                      fmt::format("a run takes pause, resume, cancel and skip, not {}", intent));
  }
  if (!outcome) {
    co_return problem_of(outcome.error());
  }
  const auto state = parts_.executor.find_run(run);
  co_return state ? json_answer(202, views::run(**state)) : problem_of(state.error());
}

net::awaitable<http::Response> Api::events(http::Request request, http::Target target) {
  if (request.method != "GET") {
    co_return wrong_method(request, "GET");
  }
  EventQuery query;
  std::string after(target.parameter("after").value_or("0"));
  if (const auto last = request.headers.get("Last-Event-ID")) {
    after = *last;
  }
  const auto sequence = parse_number(after);
  const auto wait = parse_number(target.parameter("wait").value_or("0"));
  if (!sequence || *sequence < 0 || !wait || *wait < 0 || *wait > 30) {
    co_return problem(400, "bad_request",
                      "after must be a sequence number of the journal, wait 0 to 30 seconds");
  }
  query.after = Sequence(*sequence);
  query.wait = std::chrono::seconds(*wait);
  if (const auto id = target.parameter("run")) {
    const auto run = parts_.executor.find_run(*id);
    if (!run) {
      co_return problem_of(run.error());
    }
    query.stream = "run/" + (*run)->id;
  }
  if (request.headers.get("Accept").value_or("").find("text/event-stream") !=
      std::string_view::npos) {
    co_return event_stream(parts_.journal, parts_.timers, std::move(query));
  }
  const auto page = co_await event_page(parts_.journal, parts_.timers, std::move(query));
  co_return page ? json_answer(200, *page) : problem_of(page.error());
}

}  // namespace verger::controller
