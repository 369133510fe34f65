#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"

namespace verger::api {

/// Reads JSON that came from outside. Nesting is limited, because writing and walking a value costs
/// stack for each level. Error: kCorruption, with the place; `what` names the document.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view what,
                                  std::size_t depth_limit = 64);
/// Writes JSON; bytes that are no UTF-8 become U+FFFD instead of an exception.
std::string to_text(const nlohmann::json& value);
/// The same, indented by two spaces as the server does.
std::string to_indented_text(const nlohmann::json& value);

}  // namespace verger::api
