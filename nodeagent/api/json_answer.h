#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "nodeagent/http/message.h"

namespace verger::api {

/// JSON with a newline at its end. What came from a disk or a peer may not be UTF-8; an answer
/// always is: wrong bytes are replaced.
http::Response json_answer(int status, const nlohmann::json& body);
/// The same of JSON that is text already.
http::Response json_text_answer(int status, std::string body);

/// Problem details (problem.h); `more` is merged in where it is an object.
http::Response problem(int status, std::string_view code, std::string detail);
http::Response problem(int status, std::string_view code, std::string detail,
                       const nlohmann::json& more);

}  // namespace verger::api
