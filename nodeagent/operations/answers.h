#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"
#include "nodeagent/http/message.h"

namespace verger::agent {

/// JSON with a newline at its end.
http::Response json_answer(int status, const nlohmann::json& body);
/// Problem details (RFC 9457); `code` is one of those in docs/formats/agent-interface.md, "Errors".
http::Response problem(int status, std::string_view code, std::string detail);
/// kInvalidArgument: 400 bad_request; kNotFound: 404 not_found; kRefused: 409 refused; kConflict:
/// 409 conflict; everything else: 503 unavailable.
http::Response problem_of(const Error& error);

}  // namespace verger::agent
