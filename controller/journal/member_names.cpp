#include "controller/journal/member_names.h"

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

namespace verger::controller {
namespace {

using nlohmann::json;

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

std::string snake_case(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (is_upper(c)) {
      out += '_';
    }
    out += is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

/// Starts small, has capitals, and nothing but letters and digits.
bool is_camel_case(const std::string& name) {
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' &&
         std::ranges::any_of(name, is_upper) && std::ranges::all_of(name, [](char c) {
           return is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
         });
}

json renamed(json value, bool named_by_people) {
  if (value.is_array()) {
    for (auto& each : value) {
      each = renamed(std::move(each), false);
    }
    return value;
  }
  if (!value.is_object()) {
    return value;
  }
  auto out = json::object();
  for (auto& [name, member] : value.items()) {
    const bool by_people = name == "nodes" || name == "labels";
    out[!named_by_people && is_camel_case(name) ? snake_case(name) : name] =
        renamed(std::move(member), by_people);
  }
  return out;
}

}  // namespace

json in_snake_case(json value) { return renamed(std::move(value), false); }

}  // namespace verger::controller
