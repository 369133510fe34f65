#include "controller/api/members.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

#include <nlohmann/json.hpp>

namespace verger::controller {

using nlohmann::json;

Members::Members(const json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) {
    wrong_ = Error{Errc::kInvalidArgument,
                   fmt::format("{} must be a JSON object", where_.empty() ? "the body" : where_)};
  }
}

const json* Members::find(const char* name) {
  known_.emplace_back(name);
  if (!object_.is_object()) {
    return nullptr;
  }
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Members::complain(const char* name, const char* expected) {
  if (!wrong_) {
    wrong_ = Error{Errc::kInvalidArgument, fmt::format("{}{}{} must be {}", where_,
                                                       where_.empty() ? "" : ".", name, expected)};
  }
}

Result<void> Members::finish() const {
  if (wrong_) {
    return *wrong_;
  }
  for (const auto& [name, value] : object_.items()) {
    if (std::ranges::find(known_, name) == known_.end()) {
      return Error{
          Errc::kInvalidArgument,
          fmt::format("{} has no member {}; it takes {}", where_.empty() ? "the body" : where_,
                      name, known_.empty() ? "none" : fmt::format("{}", fmt::join(known_, ", ")))};
    }
  }
  return {};
}

std::string Members::text(const char* name, std::string fallback) {
  const auto* value = find(name);
  if (value == nullptr) {
    return fallback;
  }
  if (!value->is_string()) {
    complain(name, "a string");
    return fallback;
  }
  return value->get<std::string>();
}

bool Members::flag(const char* name, bool fallback) {
  const auto* value = find(name);
  if (value == nullptr) {
    return fallback;
  }
  if (!value->is_boolean()) {
    complain(name, "true or false");
    return fallback;
  }
  return value->get<bool>();
}

std::int64_t Members::number(const char* name, std::int64_t fallback) {
  const auto* value = find(name);
  if (value == nullptr) {
    return fallback;
  }
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() ||
                     value->get<std::uint64_t>() <=
                         static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits) {
    complain(name, "a whole number of 64 bits");
    return fallback;
  }
  return value->get<std::int64_t>();
}

const json* Members::array(const char* name) {
  const auto* value = find(name);
  if (value != nullptr && !value->is_array()) {
    complain(name, "an array");
    return nullptr;
  }
  return value;
}

const json* Members::object(const char* name) {
  const auto* value = find(name);
  if (value != nullptr && !value->is_object()) {
    complain(name, "an object");
    return nullptr;
  }
  return value;
}

std::map<std::string, std::string> Members::texts(const char* name) {
  std::map<std::string, std::string> out;
  if (const auto* value = object(name)) {
    for (const auto& [key, each] : value->items()) {
      if (!each.is_string()) {
        complain(name, "an object of strings");
        return {};
      }
      out.emplace(key, each.get<std::string>());
    }
  }
  return out;
}

}  // namespace verger::controller
