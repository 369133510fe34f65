#pragma once

#include "engine/base/result.h"
#include "nodeagent/api/json_answer.h"

namespace verger::agent {

/// The codes are those of docs/formats/agent-interface.md, "Errors".
using api::json_answer;
using api::json_text_answer;
using api::problem;

/// kInvalidArgument: 400 bad_request; kNotFound: 404 not_found; kRefused: 409 refused; kConflict:
/// 409 conflict; everything else: 503 unavailable.
http::Response problem_of(const Error& error);

}  // namespace verger::agent
