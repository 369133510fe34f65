#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "controller/operations/operation_module.h"

/// The API's schemas as JSON Schema (2020-12). Besides what ApiSchema says, the type of a member
/// may be "operation" (a name of one), or "operation.parameters", "operation.planned",
/// "operation.report": of the one that the object is about; "gate" (a name of
/// planner/gate_table.h), or "severity" (of a gate).
namespace verger::controller {

/// {"$ref": ...}; `used` gets the name, as it does below.
nlohmann::json schema_reference(std::string name, std::set<std::string>& used);
nlohmann::json schema_json(const ApiSchema& described, std::set<std::string>& used);
/// Of "BackupParameters", "BackupPlannedParameters" and the like, from the operation's fields;
/// nullopt: `name` is another schema.
std::optional<nlohmann::json> parameters_schema_json(std::string_view name);

}  // namespace verger::controller
