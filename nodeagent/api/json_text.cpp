#include "nodeagent/api/json_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/json_depth.h"

namespace verger::api {

Result<nlohmann::json> parse_json(std::string_view text, std::string_view what,
                                  std::size_t depth_limit) {
  if (const auto depth = json_depth(text); depth > depth_limit) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: nested {} deep, the limit is {}", what, depth, depth_limit)};
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    return Error{Errc::kCorruption, fmt::format("{}: not JSON: {}", what, error.what())};
  }
}

std::string to_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string to_indented_text(const nlohmann::json& value) {
  return value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace verger::api
