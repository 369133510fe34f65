#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <tuple>

#include "engine/base/result.h"
#include "planner/json.h"

/// Facts of a preflight in JSON, by tables: a tuple of pairs of a name and a pointer to a member
/// that is a text, a number or a truth.
namespace verger::planner::detail {

inline const std::string* value_in(const Json& json, const std::string& /*type*/) {
  return json.as_string();
}
inline const bool* value_in(const Json& json, const bool& /*type*/) { return json.as_bool(); }
inline const std::int64_t* value_in(const Json& json, const std::int64_t& /*type*/) {
  return json.as_int();
}

template <class T, class Members>
Json written_members(const T& from, const Members& members) {
  Json::Object out;
  std::apply(
      [&](const auto&... each) { (out.insert_or_assign(each.first, from.*(each.second)), ...); },
      members);
  return out;
}

/// A member that `json` does not have is left as T has it. `facts`: for the message, such as
/// "facts of a restore". Error: kInvalidArgument.
template <class T, class Members>
Result<T> read_members(const Json& json, const Members& members, std::string_view facts) {
  const auto* object = json.as_object();
  std::string wrong = object == nullptr ? "it" : "";
  T out;
  const auto take = [&](const char* name, auto& into) {
    if (object == nullptr || !object->contains(name)) {
      return;
    }
    if (const auto* value = value_in(object->find(name)->second, into)) {
      into = *value;
    } else {
      wrong = name;
    }
  };
  std::apply([&](const auto&... each) { (take(each.first, out.*(each.second)), ...); }, members);
  if (!wrong.empty()) {
    return Error{Errc::kInvalidArgument, fmt::format("{}: {} is of another type", facts, wrong)};
  }
  return out;
}

}  // namespace verger::planner::detail
