#include "nodeagent/api/json_answer.h"

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_text.h"
#include "nodeagent/api/problem.h"

namespace verger::api {

using nlohmann::json;

http::Response json_text_answer(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.body = std::move(body);
  response.body += '\n';
  return response;
}

http::Response json_answer(int status, const json& body) {
  return json_text_answer(status, to_text(body));
}

http::Response problem(int status, std::string_view code, std::string detail, const json& more) {
  auto body = to_json(make_problem(status, code, std::move(detail)));
  if (more.is_object()) {
    body.update(more);
  }
  auto response = json_answer(status, body);
  response.headers.set("Content-Type", std::string(kProblemContentType));
  return response;
}

http::Response problem(int status, std::string_view code, std::string detail) {
  return problem(status, code, std::move(detail), json());
}

}  // namespace verger::api
