#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"
#include "planner/plan.h"

namespace verger::controller {

/// Reads what planner::to_json(plan) wrote, and checks the hash. Errors: kCorruption.
Result<planner::Plan> parse_plan(const nlohmann::json& value);
/// Missing members keep their defaults. Errors: kInvalidArgument, naming the member.
Result<planner::Policy> parse_policy(std::string_view json);
nlohmann::json to_nlohmann(const planner::Json& value);

}  // namespace verger::controller
