#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace verger::controller {

/// The API as an OpenAPI 3.1 document, made from the table of routes. `version`: of the program.
nlohmann::json openapi_document(std::string_view version);

}  // namespace verger::controller
