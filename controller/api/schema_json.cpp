#include "controller/api/schema_json.h"

#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/executor/plan_json.h"
#include "controller/operations/operation_modules.h"
#include "planner/gate_table.h"
#include "planner/operations.h"

namespace verger::controller {
namespace {

using nlohmann::json;

/// What comes behind an operation's name in the names of its schemas.
constexpr std::string_view kParameters = "Parameters";
constexpr std::string_view kPlanned = "PlannedParameters";

/// "backup", "Parameters" -> "BackupParameters"
std::string schema_name(std::string_view operation, std::string_view what) {
  std::string out(operation);
  out.front() = static_cast<char>(out.front() - 'a' + 'A');
  return out.append(what);
}

json one_of(std::vector<json> choices) {
  return choices.size() == 1 ? std::move(choices.front()) : json{{"oneOf", std::move(choices)}};
}

json type_of(std::string_view type, std::set<std::string>& used) {
  if (type == "any") {
    return json::object();
  }
  if (type == "time") {
    return json{{"type", "string"}, {"format", "date-time"}};
  }
  if (type == "operation") {
    auto names = json::array();
    for (const auto* each : planner::operations()) {
      names.push_back(each->name);
    }
    return json{{"type", "string"}, {"enum", std::move(names)}};
  }
  if (type == "gate") {
    auto names = json::array();
    for (const auto& each : planner::gate_table()) {
      names.push_back(each.name);
    }
    return json{{"type", "string"},
                {"oneOf",
                 json::array({json{{"enum", std::move(names)}}, json{{"pattern", "^queries:."}}})}};
  }
  if (type == "severity") {
    std::set<std::string_view> names;
    for (const auto& each : planner::gate_table()) {
      names.insert(planner::to_string(each.severity));
    }
    return json{{"type", "string"}, {"enum", names}};
  }
  if (type == "operation.parameters" || type == "operation.planned") {
    std::vector<json> choices;
    for (const auto* each : planner::operations()) {
      choices.push_back(schema_reference(
          schema_name(each->name, type == "operation.planned" ? kPlanned : kParameters), used));
    }
    return one_of(std::move(choices));
  }
  if (type == "operation.report") {
    std::vector<json> choices;
    for (const auto* each : operation_modules()) {
      choices.push_back(schema_reference(std::string(each->report_schema), used));
    }
    return one_of(std::move(choices));
  }
  if (type.find('|') != std::string_view::npos) {
    auto words = json::array();
    while (!type.empty()) {
      const auto end = type.find('|');
      words.push_back(type.substr(0, end));
      type = end == std::string_view::npos ? "" : type.substr(end + 1);
    }
    return json{{"type", "string"}, {"enum", std::move(words)}};
  }
  if (type.front() >= 'A' && type.front() <= 'Z') {
    return schema_reference(std::string(type), used);
  }
  return json{{"type", type}};
}

json type_of(const planner::Field& field) {
  switch (field.type) {
    case planner::Field::Type::kBoolean:
      return {{"type", "boolean"}};
    case planner::Field::Type::kChoice:
      return {{"type", "string"}, {"enum", field.choices}};
    case planner::Field::Type::kText:
      return {{"type", "string"}};
    case planner::Field::Type::kQueries:
      return {{"type", "array"}};
    case planner::Field::Type::kInteger:
      return {{"type", "integer"}, {"minimum", field.low}, {"maximum", field.high}};
    case planner::Field::Type::kMilliseconds:
      return {{"type", "integer"}, {"minimum", 0}, {"x-unit", "milliseconds"}};
    case planner::Field::Type::kBytes:
      return {{"type", "integer"}, {"minimum", 0}, {"x-unit", "bytes"}};
  }
  return {{"type", "integer"}};
}

/// Parameters of an operation, as they are asked for or as a plan shows them, from its fields.
json parameters_schema(const planner::Operation& operation, bool planned) {
  using Request = planner::Field::Request;
  planner::Policy defaults;
  defaults.operation = operation.defaults();
  json properties = json::object();
  json required = json::array();
  json order = json::array();
  for (const auto* field : planner::fields_of(operation)) {
    if (field->request != Request::kAccepted && !(planned && field->request == Request::kShown)) {
      continue;
    }
    auto schema = type_of(*field);
    schema["description"] = field->help;
    if (!planned) {
      schema["default"] = to_nlohmann(field->get(defaults));
    }
    if (planned && field->request == Request::kAccepted) {
      required.push_back(planner::api_name(*field));
    }
    order.push_back(planner::api_name(*field));
    properties[planner::api_name(*field)] = std::move(schema);
  }
  json out{
      {"type", "object"}, {"required", std::move(required)}, {"properties", std::move(properties)}};
  if (!planned) {
    out["additionalProperties"] = false;
    out["description"] = operation.summary;
    out["x-operation"] = operation.name;
    out["x-order"] = std::move(order);  // for people; members of JSON have none
  }
  return out;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  const bool there = text.ends_with(suffix);
  text.remove_suffix(there ? suffix.size() : 0);
  return there;
}

}  // namespace

json schema_reference(std::string name, std::set<std::string>& used) {
  json out{{"$ref", "#/components/schemas/" + name}};
  used.insert(std::move(name));
  return out;
}

std::optional<json> parameters_schema_json(std::string_view name) {
  for (const auto* each : planner::operations()) {
    for (const auto what : {kParameters, kPlanned}) {
      if (name == schema_name(each->name, what)) {
        return parameters_schema(*each, what == kPlanned);
      }
    }
  }
  return std::nullopt;
}

json schema_json(const ApiSchema& described, std::set<std::string>& used) {
  json properties = json::object();
  json required = json::array();
  for (auto rest = described.members; !rest.empty();) {
    const auto end = rest.find(' ');
    const auto member = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    const auto key = member.substr(0, member.find(':'));
    auto type = member.substr(key.size() + 1);
    if (take_suffix(type, "!")) {
      required.push_back(key);
    }
    const bool nullable = take_suffix(type, "?");
    const bool list = take_suffix(type, "[]");
    auto schema = type_of(type, used);
    if (list) {
      schema = json{{"type", "array"}, {"items", std::move(schema)}};
    }
    if (nullable) {
      schema = json{{"anyOf", json::array({std::move(schema), json{{"type", "null"}}})}};
    }
    properties[std::string(key)] = std::move(schema);
  }
  json out{
      {"type", "object"}, {"required", std::move(required)}, {"properties", std::move(properties)}};
  if (described.closed) {
    out["additionalProperties"] = false;
  }
  return out;
}

}  // namespace verger::controller
