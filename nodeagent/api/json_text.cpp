#include "nodeagent/api/json_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace verger::api {
namespace {

/// The deepest nesting of brackets outside strings; right for valid JSON, an upper bound of what
/// the parser gets to see otherwise.
std::size_t depth_of(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, std::string_view what,
                                  std::size_t depth_limit) {
  if (const auto depth = depth_of(text); depth > depth_limit) {
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
