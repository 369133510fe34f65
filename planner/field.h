#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/json.h"

namespace verger::planner {

struct Policy;

/// One thing that a policy says, as a row of a table: the only place where it is spelled. Plans,
/// their hashes and the journal, policy files, the API, its schema and the command line all read
/// the rows.
struct Field {
  enum class Type : std::uint8_t {
    kBoolean,
    kInteger,
    kChoice,        ///< one of `choices`
    kText,          ///< any; empty: nothing is given
    kMilliseconds,  ///< a length of time; "90m" in a policy file
    kBytes,         ///< "16MiB" in a policy file
    kQueries,       ///< a list of QueryBlocker
  };
  /// Who may say it besides a policy file.
  enum class Request : std::uint8_t {
    kNo,
    kShown,     ///< a policy file alone; the API shows it with a plan where it is not the default
    kAccepted,  ///< a request for a plan, too; the API shows it with each plan
  };

  std::string_view name;   ///< in plans, hashes and the journal: "throttlePercent"
  std::string_view place;  ///< in a policy file: "parameters.throttle_percent"
  std::string_view help;
  Type type = Type::kInteger;
  std::int64_t low = 0;  ///< of an integer in a policy file
  std::int64_t high = 0;
  std::vector<std::string_view> choices{};
  Request request = Request::kNo;
  /// False: written only where it is not the default. Fields that came later than others are, so
  /// that older plans keep their hashes.
  bool always = true;

  Json (*get)(const Policy& policy) = nullptr;
  /// False, and nothing is set: it is not of the field's type, or none of its choices.
  bool (*set)(Policy& policy, const Json& value) = nullptr;

  // for tables: field<&T::member>(...).between(1, 4).accepted()
  Field between(std::int64_t least, std::int64_t most) &&;
  Field length() &&;  ///< milliseconds
  Field size() &&;    ///< bytes
  Field accepted() &&;
  Field shown() &&;
  Field later() &&;  ///< not always
};

/// What its value may be, for people: "1 to 4", "rolling, offline", "true or false".
std::string values_of(const Field& field);
/// "throttlePercent" -> "throttle_percent": in the API, and behind "--" (with hyphens).
std::string api_name(const Field& field);
/// "parameters.leader.threads" -> "parameters.leader"; "strategy" -> "".
std::string_view section_of(const Field& field);
std::string_view key_of(const Field& field);

}  // namespace verger::planner
