#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <variant>

#include "planner/field.h"
#include "planner/policy.h"

/// Rows of a table of fields, from pointers to members. An enumeration that is a field's type has a
/// `to_string`, and an overload of `choices_of` that lists its values.
namespace verger::planner::detail {

/// The part of a policy that has the type, the operation's own among them.
template <class Part>
Part& part_of(Policy& policy) {
  if constexpr (std::is_same_v<Part, RunLimits>) {
    return policy.limits;
  } else if constexpr (std::is_same_v<Part, GateLimits>) {
    return policy.gates;
  } else if constexpr (std::is_same_v<Part, PauseRules>) {
    return policy.pauses;
  } else {
    return std::get<Part>(policy.operation);
  }
}
template <class Part>
const Part& part_of(const Policy& policy) {
  return part_of<Part>(const_cast<Policy&>(policy));  // NOLINT: returned const again
}

template <class Value>
Json encoded(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return to_string(value);
  } else {
    return value;
  }
}
Json encoded(const std::vector<QueryBlocker>& queries);

template <class Value>
bool decode(const Json& json, Value& into) {
  if constexpr (std::is_same_v<Value, bool>) {
    const auto* truth = json.as_bool();
    into = truth != nullptr ? *truth : into;
    return truth != nullptr;
  } else if constexpr (std::is_same_v<Value, std::string>) {
    const auto* text = json.as_string();
    into = text != nullptr ? *text : into;
    return text != nullptr;
  } else if constexpr (std::is_enum_v<Value>) {
    const auto* text = json.as_string();
    for (const auto choice : choices_of(Value{})) {
      if (text != nullptr && to_string(choice) == *text) {
        into = choice;
        return true;
      }
    }
    return false;
  } else {
    const auto* number = json.as_int();
    if (number == nullptr || *number < std::numeric_limits<Value>::min() ||
        *number > std::numeric_limits<Value>::max()) {
      return false;
    }
    into = static_cast<Value>(*number);
    return true;
  }
}
bool decode(const Json& json, std::vector<QueryBlocker>& into);

template <class T>
struct MemberPointer;
template <class Owner, class Type>
struct MemberPointer<Type Owner::*> {
  using Part = Owner;
  using Value = Type;
};

template <auto kMember>
Field field(std::string_view name, std::string_view place, std::string_view help) {
  using Part = typename MemberPointer<decltype(kMember)>::Part;
  using Value = typename MemberPointer<decltype(kMember)>::Value;
  Field out;
  out.name = name;
  out.place = place;
  out.help = help;
  if constexpr (std::is_same_v<Value, bool>) {
    out.type = Field::Type::kBoolean;
  } else if constexpr (std::is_same_v<Value, std::vector<QueryBlocker>>) {
    out.type = Field::Type::kQueries;
  } else if constexpr (std::is_same_v<Value, std::string>) {
    out.type = Field::Type::kText;
  } else if constexpr (std::is_enum_v<Value>) {
    out.type = Field::Type::kChoice;
    for (const auto choice : choices_of(Value{})) {
      out.choices.push_back(to_string(choice));
    }
  }
  out.get = [](const Policy& policy) { return encoded(part_of<Part>(policy).*kMember); };
  out.set = [](Policy& policy, const Json& value) {
    return decode(value, part_of<Part>(policy).*kMember);
  };
  return out;
}

}  // namespace verger::planner::detail
