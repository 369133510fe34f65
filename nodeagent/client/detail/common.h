#pragma once

#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>

#include "nodeagent/client/outcome.h"
#include "nodeagent/http/message.h"

namespace verger::client {

/// The failures that every route has (node-interface.md, 1.1, 1.2, 1.12), without a value.
struct CommonFailure {
  Verdict verdict = Verdict::kUnknown;
  std::string code;
  std::string why;
  std::chrono::seconds retry_after{0};

  template <class T>
  [[nodiscard]] Outcome<T> as() const {
    return Outcome<T>{.verdict = verdict, .code = code, .why = why, .retry_after = retry_after};
  }
};

/// "400 Bad Request: threads must be a 1 or above"; a long body is cut.
std::string describe(const http::Response& response);
/// What the status alone says, on any route; for a status that is a success: another body
/// than was promised.
CommonFailure common_failure(const http::Response& response);
/// A route of the server gave the answer, and not the lack of one.
bool from_a_route(const http::Response& response);
bool is_guid(std::string_view text);

}  // namespace verger::client
