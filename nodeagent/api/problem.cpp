#include "nodeagent/api/problem.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_fields.h"
#include "nodeagent/api/json_text.h"

namespace verger::api {
namespace {

int status_of(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return 400;
    case Errc::kUnauthorized:
      return 401;
    case Errc::kNotFound:
      return 404;
    case Errc::kExists:
    case Errc::kConflict:
    case Errc::kRefused:
      return 409;
    case Errc::kDeleted:
      return 410;
    case Errc::kUnsupported:
      return 422;
    case Errc::kUnavailable:
      return 503;
    case Errc::kTimeout:
      return 504;
    case Errc::kCorruption:
    case Errc::kNoSpace:
    case Errc::kIo:
    case Errc::kCancelled:
    case Errc::kUnknownOutcome:
      return 500;
  }
  return 500;
}

std::optional<Errc> code_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Errc::kUnknownOutcome); ++i) {
    if (to_string(static_cast<Errc>(i)) == name) {
      return static_cast<Errc>(i);
    }
  }
  return std::nullopt;
}

Errc code_of(int status) {
  switch (status) {
    case 400:
      return Errc::kInvalidArgument;
    case 401:
    case 403:
      return Errc::kUnauthorized;
    case 404:
      return Errc::kNotFound;
    case 409:
    case 412:
      return Errc::kConflict;
    case 410:
      return Errc::kDeleted;
    case 415:
    case 422:
      return Errc::kUnsupported;
    case 429:
    case 503:
      return Errc::kUnavailable;
    default:
      // A server's failure says nothing about how far it got.
      return status >= 500 ? Errc::kUnknownOutcome : Errc::kRefused;
  }
}

}  // namespace

Problem make_problem(int status, std::string_view code, std::string detail) {
  Problem problem;
  problem.type = fmt::format("urn:verger:problem:{}", code);
  problem.title = code;
  std::ranges::replace(problem.title, '_', ' ');
  if (!problem.title.empty() && problem.title[0] >= 'a' && problem.title[0] <= 'z') {
    problem.title[0] = static_cast<char>(problem.title[0] - 'a' + 'A');
  }
  problem.status = status;
  problem.detail = std::move(detail);
  problem.code = code;
  return problem;
}

Problem to_problem(const Error& error) {
  return make_problem(status_of(error.code), to_string(error.code), error.message);
}

Error to_error(const Problem& problem) {
  auto message = !problem.detail.empty()  ? problem.detail
                 : !problem.title.empty() ? problem.title
                                          : fmt::format("status {}", problem.status);
  return Error{code_named(problem.code).value_or(code_of(problem.status)), std::move(message)};
}

nlohmann::json to_json(const Problem& problem) {
  return {{"type", problem.type},
          {"title", problem.title},
          {"status", problem.status},
          {"detail", problem.detail},
          {"code", problem.code}};
}

Result<Problem> parse_problem(std::string_view body) {
  VERGER_TRY(const auto document, JsonDocument::parse(body, "problem details"));
  Problem problem;
  Fields fields(document.root(), "problem details");
  fields.read("type", problem.type);
  fields.read("title", problem.title);
  fields.read("status", problem.status);
  fields.read("detail", problem.detail);
  fields.read("code", problem.code);
  VERGER_RETURN_IF_ERROR(fields.result());
  return problem;
}

}  // namespace verger::api
