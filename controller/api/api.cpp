#include "controller/api/api.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/event_feed.h"
#include "controller/api/metrics.h"
#include "controller/api/openapi.h"
#include "controller/api/routes.h"
#include "engine/base/digest.h"
#include "engine/base/number_from_text.h"

// From a request to its handler: route, token, role, audit, idempotency. And /events, which
// any part may have news for. The other routes are in *_routes.cpp.
namespace verger::controller {
namespace {}  // namespace

http::Handler Api::handler() {
  return [this](http::Request request) { return answer(std::move(request)); };
}

std::expected<Principal, http::Response> Api::principal_of(const http::Request& request,
                                                           const std::string& path,
                                                           ApiRole needed) const {
  if (needed == ApiRole::kNobody) {
    return Principal{};
  }
  auto who = parts_.access.who(request);
  if (!who) {
    auto refused = problem_of(who.error());
    if (const auto hint = parts_.access.bootstrap_hint(request)) {
      auto body = nlohmann::json::parse(refused.body);
      body["bootstrap_token_file"] = hint->file;
      if (!hint->proof.empty()) {
        body["bootstrap_token_proof"] = hint->proof;
      }
      refused.body = body.dump() + '\n';
    }
    refused.headers.set("WWW-Authenticate", "Bearer");
    return std::unexpected(std::move(refused));
  }
  if (who->role < needed) {
    return std::unexpected(
        problem(403, "forbidden",
                fmt::format("{} has the role {}; {} {} needs {}", who->name, to_string(who->role),
                            request.method, path, to_string(needed))));
  }
  return *std::move(who);
}

net::awaitable<http::Response> Api::answer(http::Request request) {
  const auto target = http::parse_target(request.target);
  if (!target) {
    co_return problem(400, "bad_request", target.error().message);
  }
  const auto& path = target->segments;
  if (path.size() == 1 && path[0] == "metrics" && request.method == "GET") {
    auto principal = principal_of(request, target->path, ApiRole::kViewer);
    if (!principal) {
      co_return std::move(principal).error();
    }
    co_return metrics_answer(parts_);
  }
  if (path.size() < 3 || path[0] != "api" || path[1] != "v1") {
    co_return no_route(request);
  }
  std::vector<std::string_view> methods;
  const auto* route = find_route(request.method, std::span(path).subspan(2), methods);
  if (route == nullptr) {
    co_return methods.empty() ? no_route(request)
                              : wrong_method(request, fmt::format("{}", fmt::join(methods, ", ")));
  }
  auto principal = principal_of(request, target->path, route->role);
  if (!principal) {
    co_return std::move(principal).error();
  }
  if (route->id == "enrolAgent") {
    // A caller without a token must not be able to fill the journal: what succeeds records itself.
    co_return enrol_agent(request);
  }
  if (request.method == "GET" || route->id == "validatePolicy" || route->id == "diffPolicy") {
    const http::Request asked{
        .method = request.method, .target = request.target, .headers = request.headers};
    auto response = co_await dispatch(std::move(request), *target, *principal);
    answer_conditionally(asked, response);
    co_return response;
  }
  co_return co_await answer_on_record(std::move(request), *target, *std::move(principal),
                                      route->id);
}

net::awaitable<http::Response> Api::answer_on_record(http::Request request, http::Target target,
                                                     Principal principal, std::string_view route) {
  std::string key_stream;
  if (const auto key = request.headers.get("Idempotency-Key"); key && request.method == "POST") {
    if (key->empty() || key->size() > 200) {
      co_return problem(400, "bad_request", "Idempotency-Key takes 1 to 200 characters");
    }
    key_stream = fmt::format("{}{}", kAnswerStreams,
                             to_hex(sha256(as_bytes(fmt::format("{}\n{}", principal.name, *key)))));
    if (auto known = known_answer(request, key_stream)) {
      co_return *std::move(known);
    }
  }
  const auto asked = parts_.access.asked(principal, request, route);
  if (!asked) {
    co_return problem_of(asked.error());  // what cannot be put on record is not done
  }
  if (key_stream.empty()) {
    auto response = co_await dispatch(std::move(request), std::move(target), principal);
    parts_.access.answered(*asked, response.status);
    co_return response;
  }
  const auto original = request;
  http::Response response;
  {
    struct Entry {
      std::set<std::string>& keys;
      const std::string& key;
      Entry(std::set<std::string>& all, const std::string& own) : keys(all), key(own) {
        keys.insert(key);
      }
      ~Entry() { keys.erase(key); }  // also where the handler throws: the key is to be used again
    } under_way(under_way_, key_stream);
    response = co_await dispatch(std::move(request), std::move(target), principal);
  }
  parts_.access.answered(*asked, response.status);
  keep_answer(original, route, key_stream, response);
  co_return response;
}

http::Response Api::refusal_of(const Error& error, const std::string& cluster) const {
  if (error.code != Errc::kRefused) {
    return problem_of(error);
  }
  if (const auto newest = parts_.journal.epoch(); newest && *newest != parts_.epoch) {
    return problem(409, "other_controller", error.message);
  }
  if (const auto config = parts_.registry.find(cluster); config && config->paused) {
    return problem(409, "cluster_paused", error.message);
  }
  return problem(409, "run_active", error.message);
}

net::awaitable<http::Response> Api::dispatch(http::Request request, http::Target target,
                                             Principal principal) {
  const auto& path = target.segments;
  auto by = std::move(principal.name);
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
  if (path[2] == "agents") {
    co_return agents(request, target, by);
  }
  if (path[2] == "audit") {
    co_return path.size() == 4 ? co_await verify_audit() : co_await audit(std::move(target));
  }
  if (path[2] == "admin") {
    co_return co_await journal(std::move(request), std::move(target), std::move(by));
  }
  if (path[2] == "events" && path.size() == 3) {
    co_return co_await events(std::move(request), target, principal.role);
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

net::awaitable<http::Response> Api::events(http::Request request, http::Target target,
                                           ApiRole role) {
  if (request.method != "GET") {
    co_return wrong_method(request, "GET");
  }
  EventQuery query;
  query.role = role;
  std::string after(target.parameter("after").value_or("0"));
  if (const auto last = request.headers.get("Last-Event-ID")) {
    after = *last;
  }
  const auto sequence = number_from_text<std::int64_t>(after);
  const auto wait = number_from_text<std::int64_t>(target.parameter("wait").value_or("0"));
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
    co_return event_stream(parts_.journal, parts_.timers, parts_.clock, std::move(query));
  }
  const auto page =
      co_await event_page(parts_.journal, parts_.timers, parts_.clock, std::move(query));
  co_return page ? json_answer(200, *page) : problem_of(page.error());
}

}  // namespace verger::controller
