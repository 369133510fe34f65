#pragma once

#include <algorithm>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

namespace verger::test {

/// Paths of the members, at any depth, whose names have one of the characters that `is_wrong`
/// names.
template <class IsWrong>
void collect_members(const nlohmann::json& value, const std::string& path, const IsWrong& is_wrong,
                     std::set<std::string>& out) {
  if (value.is_array()) {
    for (const auto& each : value) {
      collect_members(each, path + "[]", is_wrong, out);
    }
  } else if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      if (std::ranges::any_of(name, is_wrong)) {
        out.insert(path + "." + name);
      }
      collect_members(member, path + "." + name, is_wrong, out);
    }
  }
}

/// As vergerd's API and journal have none.
inline std::set<std::string> not_snake_case(const nlohmann::json& value,
                                            const std::string& path = {}) {
  std::set<std::string> out;
  collect_members(value, path, [](char c) { return c >= 'A' && c <= 'Z'; }, out);
  return out;
}

/// As the agent interface has none.
inline std::set<std::string> not_camel_case(const nlohmann::json& value,
                                            const std::string& path = {}) {
  std::set<std::string> out;
  collect_members(value, path, [](char c) { return c == '_'; }, out);
  return out;
}

}  // namespace verger::test
