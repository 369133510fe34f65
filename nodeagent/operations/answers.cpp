#include "nodeagent/operations/answers.h"

#include <nlohmann/json.hpp>

#include "nodeagent/api/problem.h"

namespace verger::agent {

using nlohmann::json;

http::Response json_answer(int status, const json& body) {
  http::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  return response;
}

http::Response problem(int status, std::string_view code, std::string detail) {
  auto response =
      json_answer(status, api::to_json(api::make_problem(status, code, std::move(detail))));
  response.headers.set("Content-Type", std::string(api::kProblemContentType));
  return response;
}

http::Response problem_of(const Error& error) {
  switch (error.code) {
    case Errc::kInvalidArgument:
      return problem(400, "bad_request", error.message);
    case Errc::kNotFound:
      return problem(404, "not_found", error.message);
    case Errc::kRefused:
      return problem(409, "refused", error.message);
    case Errc::kConflict:
      return problem(409, "conflict", error.message);
    default:
      return problem(503, "unavailable", error.message);
  }
}

}  // namespace verger::agent
