#include "controller/api/api.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/metrics.h"

namespace verger::controller {

Api::Api(ApiParts parts)
    : parts_(std::move(parts)), kept_(parts_.journal, parts_.epoch, parts_.log) {
  for (const auto& route : api_routes()) {
    router_.add(
        std::string(route.method), "/api/v1" + std::string(route.path),
        [this, &route](http::RoutedRequest request) { return admit(route, std::move(request)); });
  }
  router_.add("GET", "/metrics",
              [this](http::RoutedRequest request) { return metrics(std::move(request)); });
}

http::Handler Api::handler() {
  return [this](http::Request request) { return answer(std::move(request)); };
}

net::awaitable<http::Response> Api::answer(http::Request request) {
  auto target = http::parse_target(request.target);
  if (!target) {
    co_return problem(400, "bad_request", target.error().message);
  }
  auto match = router_.find(request.method, *target);
  if (match.handler == nullptr) {
    co_return match.allow.empty() ? no_route(request) : wrong_method(request, match.allow);
  }
  co_return co_await (*match.handler)({.request = std::move(request),
                                       .target = *std::move(target),
                                       .parameters = std::move(match.parameters)});
}

net::awaitable<http::Response> Api::metrics(http::RoutedRequest request) {
  const auto principal = principal_of(request.request, request.target.path, ApiRole::kViewer);
  co_return principal ? metrics_answer(parts_) : principal.error();
}

std::expected<Principal, http::Response> Api::principal_of(const http::Request& request,
                                                           const std::string& path,
                                                           ApiRole needed) const {
  if (needed == ApiRole::kNobody) {
    return Principal{};
  }
  auto principal = parts_.access.authenticate(request);
  if (!principal) {
    auto refused = problem_of(principal.error());
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
  if (principal->role < needed) {
    return std::unexpected(
        problem(403, "forbidden",
                fmt::format("{} has the role {}; {} {} needs {}", principal->name,
                            to_string(principal->role), request.method, path, to_string(needed))));
  }
  return *std::move(principal);
}

net::awaitable<http::Response> Api::admit(const Route& route, http::RoutedRequest request) {
  auto principal = principal_of(request.request, request.target.path, route.role);
  if (!principal) {
    co_return std::move(principal).error();
  }
  Call call{std::move(request), *std::move(principal)};
  if (route.on_record == OnRecord::kByItself) {
    co_return co_await route.answer(parts_, std::move(call));
  }
  if (route.method == "GET" || route.on_record == OnRecord::kNever) {
    const http::Request asked{.method = call.request.method,
                              .target = call.request.target,
                              .headers = call.request.headers};
    auto response = co_await route.answer(parts_, std::move(call));
    answer_conditionally(asked, response);
    co_return response;
  }
  co_return co_await answer_on_record(route, std::move(call));
}

net::awaitable<http::Response> Api::answer_on_record(const Route& route, Call call) {
  std::string key_stream;
  if (const auto key = call.request.headers.get("Idempotency-Key"); key && route.method == "POST") {
    if (key->empty() || key->size() > 200) {
      co_return problem(400, "bad_request", "Idempotency-Key takes 1 to 200 characters");
    }
    key_stream = KeptAnswers::stream_of(call.by(), std::string(*key));
    if (auto known = kept_.find(call.request, key_stream)) {
      co_return *std::move(known);
    }
  }
  const auto recorded = parts_.access.record_request(call.caller, call.request, route.id);
  if (!recorded) {
    co_return problem_of(recorded.error());  // what cannot be put on record is not done
  }
  if (key_stream.empty()) {
    auto response = co_await route.answer(parts_, std::move(call));
    parts_.access.record_outcome(*recorded, response.status);
    co_return response;
  }
  const auto original = call.request;
  http::Response response;
  {
    // Also where the answer throws: the key is to be used again.
    const KeptAnswers::UnderWay under_way(kept_, key_stream);
    response = co_await route.answer(parts_, std::move(call));
  }
  parts_.access.record_outcome(*recorded, response.status);
  if (route.on_record != OnRecord::kAudited) {
    kept_.keep(original, key_stream, response);
  }
  co_return response;
}

http::Response refusal_of(const ApiParts& parts, const Error& error, const std::string& cluster) {
  if (error.code != Errc::kRefused) {
    return problem_of(error);
  }
  if (const auto newest = parts.journal.epoch(); newest && *newest != parts.epoch) {
    return problem(409, "other_controller", error.message);
  }
  if (const auto config = parts.registry.find(cluster); config && config->paused) {
    return problem(409, "cluster_paused", error.message);
  }
  return problem(409, "run_active", error.message);
}

}  // namespace verger::controller
