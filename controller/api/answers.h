#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"
#include "nodeagent/http/message.h"

namespace verger::controller {

http::Response json_answer(int status, const nlohmann::json& body);

/// RFC 9457 problem details with a stable `code`; `more` is merged in where it is an object.
http::Response problem(int status, std::string_view code, std::string detail);
http::Response problem(int status, std::string_view code, std::string detail,
                       const nlohmann::json& more);

/// The problem an Error of the executor, the registry or the journal is to a client.
http::Response problem_of(const Error& error);
http::Response no_route(const http::Request& request);
http::Response wrong_method(const http::Request& request, std::string_view allowed);

/// A JSON object; an empty body is an empty one. Error: kInvalidArgument.
Result<nlohmann::json> parse_body(const std::string& body);

}  // namespace verger::controller
