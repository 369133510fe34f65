#include "planner/scavenge/scavenge_estimates.h"

namespace verger::planner {
namespace {

const Json* estimate_member(const Json::Object& object, std::string_view name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &found->second;
}

std::int64_t estimated_number(const Json::Object& object, std::string_view name) {
  const auto* member = estimate_member(object, name);
  const auto* number = member == nullptr ? nullptr : member->as_int();
  return number == nullptr ? -1 : *number;
}

}  // namespace

Json to_json(const ScavengeEstimates& estimates) {
  Json::Object out;
  for (const auto& [node, seen] : estimates) {
    out.emplace(node, Json::Object{{"atLeast", seen.at_least},
                                   {"problem", seen.problem},
                                   {"removedBytes", seen.removed_bytes},
                                   {"removedRecords", seen.removed_records}});
  }
  return out;
}

ScavengeEstimates read_scavenge_estimates(const Json& value) {
  ScavengeEstimates out;
  const auto* nodes = value.as_object();
  if (nodes == nullptr) {
    return out;
  }
  for (const auto& [node, json] : *nodes) {
    if (const auto* object = json.as_object()) {
      const auto* at_least = estimate_member(*object, "atLeast");
      const auto* is_least = at_least == nullptr ? nullptr : at_least->as_bool();
      const auto* problem = estimate_member(*object, "problem");
      const auto* text = problem == nullptr ? nullptr : problem->as_string();
      out.emplace(node, NodeEstimate{.removed_bytes = estimated_number(*object, "removedBytes"),
                                     .removed_records = estimated_number(*object, "removedRecords"),
                                     .at_least = is_least != nullptr && *is_least,
                                     .problem = text == nullptr ? std::string() : *text});
    }
  }
  return out;
}

}  // namespace verger::planner
