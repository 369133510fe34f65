#include "controller/api/answers.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/digest.h"
#include "engine/base/json_depth.h"
#include "engine/base/number_from_text.h"

namespace verger::controller {

using nlohmann::json;

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
    case Errc::kRefused:  // of the journal; Api::refusal_of distinguishes the others
      return problem(409, "other_controller", error.message);
    case Errc::kUnauthorized:
      return problem(401, "unauthorized", error.message);
    case Errc::kUnavailable:
    case Errc::kTimeout:
    case Errc::kCancelled:
      return problem(503, "unavailable", error.message);
    case Errc::kNoSpace:
      return problem(503, "unavailable", error.message + "; free disk space there, then ask again");
    case Errc::kUnknownOutcome:
      return problem(500, "unknown_outcome", error.message);
    case Errc::kCorruption:
    case Errc::kIo:
    case Errc::kDeleted:
      return problem(500, "internal", error.message);
  }
  return problem(500, "internal", error.message);
}

http::Response no_content() {
  http::Response response;
  response.status = 204;
  return response;
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

http::Response paged_answer(std::string_view member, const std::vector<std::string>& keys,
                            const http::Target& target,
                            const std::function<Result<json>(std::size_t)>& item) {
  return paged_answer(member, keys, target, item, json::object());
}

http::Response paged_answer(std::string_view member, const std::vector<std::string>& keys,
                            const http::Target& target,
                            const std::function<Result<json>(std::size_t)>& item, json beside) {
  constexpr std::size_t kUsual = 500;
  constexpr std::size_t kMost = 1'000;
  auto limit = kUsual;
  if (const auto text = target.parameter("limit")) {
    const auto wanted = number_from_text<std::size_t>(*text);
    if (!wanted || *wanted < 1 || *wanted > kMost) {
      return problem(400, "bad_request", "limit takes 1 to 1000");
    }
    limit = *wanted;
  }
  std::size_t begin = 0;
  if (const auto cursor = target.parameter("cursor")) {
    const auto found = std::ranges::find(keys, *cursor);
    if (found == keys.end()) {
      return problem(400, "bad_cursor", "unknown cursor, or its item is gone; begin without one");
    }
    begin = static_cast<std::size_t>(found - keys.begin()) + 1;
  }
  const auto end = std::min(keys.size(), begin + limit);
  auto list = json::array();
  for (auto i = begin; i < end; ++i) {
    auto shown = item(i);
    if (!shown) {
      return problem_of(shown.error());
    }
    list.push_back(std::move(*shown));
  }
  beside[std::string(member)] = std::move(list);
  beside["next_cursor"] = end < keys.size() ? json(keys[end - 1]) : json();
  return json_answer(200, beside);
}

void answer_conditionally(const http::Request& request, http::Response& response) {
  if (request.method != "GET" || response.status != 200 || response.stream) {
    return;
  }
  auto tag = std::string(response.headers.get("ETag").value_or(""));
  if (tag.empty()) {
    tag = fmt::format("\"{}\"", to_hex(sha256(as_bytes(response.body))).substr(0, 32));
    response.headers.set("ETag", tag);
  }
  const auto known = request.headers.get("If-None-Match");
  if (known && (*known == "*" || known->find(tag) != std::string_view::npos)) {
    response.status = 304;
    response.body.clear();
  }
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
