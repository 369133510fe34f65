#include "nodeagent/api/member_names.h"

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_text.h"

namespace verger::api {
namespace {

std::string camel_case(const std::string& name) {
  std::string out;
  bool capital = false;
  for (const char c : name) {
    if (c == '_' && !out.empty()) {
      capital = true;
      continue;
    }
    out += capital && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    capital = false;
  }
  return out;
}

nlohmann::json with_camel_case(nlohmann::json value) {  // NOLINT(misc-no-recursion)
  if (value.is_array()) {
    for (auto& each : value) {
      each = with_camel_case(std::move(each));
    }
    return value;
  }
  if (!value.is_object()) {
    return value;
  }
  auto out = nlohmann::json::object();
  for (auto& [name, member] : value.items()) {
    out[camel_case(name)] = with_camel_case(std::move(member));
  }
  return out;
}

}  // namespace

std::string in_camel_case(std::string json_text) {
  if (json_text.find('_') == std::string::npos) {
    return json_text;
  }
  auto value = nlohmann::json::parse(json_text, nullptr, false);
  return value.is_discarded() ? json_text : to_text(with_camel_case(std::move(value)));
}

}  // namespace verger::api
