#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"
#include "planner/plan.h"

namespace verger::controller {

/// Reads what planner::text_of(plan) wrote, and checks the hash. Errors: kCorruption.
Result<planner::Plan> parse_plan(const nlohmann::json& value);
nlohmann::json to_nlohmann(const planner::Json& value);

}  // namespace verger::controller
