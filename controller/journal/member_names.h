#pragma once

#include <nlohmann/json_fwd.hpp>

namespace verger::controller {

/// Members in the names of the API and the journal's events: "bytesBefore" becomes "bytes_before",
/// at any depth. What journals of earlier versions and the hashed form of plans have in camelCase
/// reads the same. Members of objects called "nodes" and "labels" are named by people and keep
/// their names.
nlohmann::json in_snake_case(nlohmann::json value);

}  // namespace verger::controller
