#include "controller/api/answers.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/json_depth.h"
#include "nodeagent/api/problem.h"

namespace verger::controller {

using nlohmann::json;

http::Response json_answer(int status, const json& body) {
  http::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  // What came from a disk or a peer may not be UTF-8; an answer always is.
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  return response;
}

http::Response problem(int status, std::string_view code, std::string detail, const json& more) {
  auto body = api::to_json(api::make_problem(status, code, std::move(detail)));
  if (more.is_object()) {
    body.update(more);
  }
  auto response = json_answer(status, body);
  response.headers.set("Content-Type", std::string(api::kProblemContentType));
  return response;
}

http::Response problem(int status, std::string_view code, std::string detail) {
  return problem(status, code, std::move(detail), json());
}

http::Response problem_of(const Error& error) {
  switch (error.code) {
    case Errc::kInvalidArgument:
    case Errc::kUnsupported:
      return problem(400, "bad_request", error.message);
    case Errc::kNotFound:
      return problem(404, "not_found", error.message);
    case Errc::kExists:
      return problem(409, "cluster_exists", error.message);
    case Errc::kConflict:
      return problem(409, "wrong_state", error.message);
    case Errc::kRefused:
      return problem(409, "run_active", error.message);
    case Errc::kUnauthorized:
      return problem(401, "unauthorized", error.message);
    case Errc::kUnavailable:
    case Errc::kTimeout:
    case Errc::kNoSpace:
    case Errc::kUnknownOutcome:
    case Errc::kCancelled:
      return problem(503, "unavailable", error.message);
    case Errc::kCorruption:
    case Errc::kIo:
    case Errc::kDeleted:
      return problem(500, "internal", error.message);
  }
  return problem(500, "internal", error.message);
}

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

Result<json> parse_body(const std::string& body) {
  if (json_depth(body) > kMaxJsonDepth) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("the body is nested deeper than {} levels", kMaxJsonDepth)};
  }
  auto parsed = body.empty() ? json::object() : json::parse(body, nullptr, false);
  if (!parsed.is_object()) {
    return Error{Errc::kInvalidArgument, "the body is not a JSON object"};
  }
  return parsed;
}

}  // namespace verger::controller
