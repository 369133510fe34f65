#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"

namespace verger::api {

inline constexpr std::string_view kProblemContentType = "application/problem+json";

/// Problem details (RFC 9457), with a `code` that programs may compare and that never changes.
struct Problem {
  std::string type = "about:blank";
  std::string title{};
  int status = 500;
  std::string detail{};
  std::string code{};
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// `code` in snake case; the type becomes "urn:verger:problem:<code>" and the title the code in
/// words.
Problem make_problem(int status, std::string_view code, std::string detail);
/// The status that fits an error's code: kInvalidArgument 400, kUnauthorized 401, kNotFound 404,
/// kExists, kConflict and kRefused 409, kDeleted 410, kUnsupported 422, kUnavailable 503, kTimeout
/// 504, others 500. The problem's code is the error code's name.
Problem to_problem(const Error& error);
/// And back, as far as it goes: by the code where it is the name of an error code, else by the
/// status. The message is the detail.
Error to_error(const Problem& problem);

nlohmann::json to_json(const Problem& problem);
/// Error: kCorruption: not JSON or no object. Members that are missing keep their defaults.
Result<Problem> parse_problem(std::string_view body);

}  // namespace verger::api
