#include "controller/api/openapi.h"

#include <algorithm>
#include <array>
#include <string>

#include <nlohmann/json.hpp>

#include "controller/api/routes.h"

namespace verger::controller {
namespace {

using nlohmann::json;

/// A member that an object must have. `type` is JSON Schema's, or "Run[]": a list of that schema.
struct Member {
  std::string_view name{};
  std::string_view type{};
};
struct Schema {
  std::string_view name;
  std::array<Member, 5> members;  ///< nameless ones fill it up
};

/// What objects must have; all may have more. A schema that is not here asks for an object alone.
constexpr Schema kSchemas[] = {
    {"NewCluster", {{{"name", "string"}, {"nodes", "array"}}}},
    {"Cluster", {{{"name", "string"}, {"nodes", "array"}, {"paused", "boolean"}}}},
    {"Clusters", {{{"clusters", "Cluster[]"}}}},
    {"NewPlan", {{{"operation", "string"}}}},
    {"Plan",
     {{{"hash", "string"}, {"cluster", "string"}, {"stages", "array"}, {"notes", "array"}}}},
    {"Plans", {{{"plans", "Plan[]"}}}},
    {"Run",
     {{{"id", "string"},
       {"cluster", "string"},
       {"plan", "string"},
       {"state", "string"},
       {"stages", "array"}}}},
    {"Runs", {{{"runs", "Run[]"}}}},
    {"Policy",
     {{{"name", "string"}, {"enabled", "boolean"}, {"schedule", "array"}, {"catch_up", "string"}}}},
    {"Policies", {{{"policies", "Policy[]"}}}},
    {"PolicyText", {{{"yaml", "string"}}}},
    {"PolicyDiff", {{{"name", "string"}, {"known", "boolean"}, {"changes", "array"}}}},
    {"Schedule", {{{"cluster", "string"}, {"zone", "string"}, {"times", "array"}}}},
    {"Skip", {{{"node", "string"}}}},
    {"Events", {{{"events", "array"}, {"next", "integer"}}}},
    {"Audit", {{{"entries", "array"}, {"next", "integer"}}}},
    {"AuditVerified", {{{"verified", "integer"}}}},
    {"NewToken", {{{"name", "string"}, {"role", "string"}}}},
    {"TokenSecret",
     {{{"id", "string"}, {"name", "string"}, {"role", "string"}, {"token", "string"}}}},
    {"Tokens", {{{"tokens", "array"}}}},
    {"Agents", {{{"agents", "array"}, {"tokens", "array"}}}},
    {"NewAgentToken", {{{"cluster", "string"}, {"node", "string"}}}},
    {"AgentToken",
     {{{"id", "string"}, {"cluster", "string"}, {"node", "string"}, {"token", "string"}}}},
    {"AgentEnrolment", {{{"token", "string"}, {"request", "string"}}}},
    {"AgentCertificate",
     {{{"cluster", "string"},
       {"node", "string"},
       {"certificate", "string"},
       {"authority", "string"}}}},
    {"Health", {{{"status", "string"}, {"version", "string"}, {"controller_epoch", "integer"}}}},
    {"Problem",
     {{{"type", "string"},
       {"title", "string"},
       {"status", "integer"},
       {"code", "string"},
       {"detail", "string"}}}},
};

json type_of(std::string_view type) {
  if (!type.ends_with("[]")) {
    return json{{"type", type}};
  }
  type.remove_suffix(2);
  return json{{"type", "array"},
              {"items", {{"$ref", "#/components/schemas/" + std::string(type)}}}};
}

json schema_of(std::string_view name) {
  const auto* const found = std::ranges::find(kSchemas, name, &Schema::name);
  if (found == std::ranges::end(kSchemas)) {
    return json{{"type", "object"}};
  }
  json properties = json::object();
  json required = json::array();
  for (const auto& member : found->members) {
    if (!member.name.empty()) {
      properties[std::string(member.name)] = type_of(member.type);
      required.push_back(member.name);
    }
  }
  return json{
      {"type", "object"}, {"required", std::move(required)}, {"properties", std::move(properties)}};
}

}  // namespace

json openapi_document(std::string_view version) {
  json paths = json::object();
  json schemas{{"Problem", schema_of("Problem")}};
  const auto reference = [&schemas](std::string_view name) {
    schemas[std::string(name)] = schema_of(name);
    return json{{"$ref", "#/components/schemas/" + std::string(name)}};
  };
  for (const auto& route : api_routes()) {
    json operation{
        {"operationId", route.id}, {"summary", route.summary}, {"x-role", to_string(route.role)}};
    auto parameters = json::array();
    for (const auto part : path_parts(route.path)) {
      if (is_variable(part)) {
        parameters.push_back({{"name", part.substr(1, part.size() - 2)},
                              {"in", "path"},
                              {"required", true},
                              {"schema", {{"type", "string"}}}});
      }
    }
    for (std::string_view rest = route.query; !rest.empty();) {
      const auto end = rest.find(' ');
      parameters.push_back(
          {{"name", rest.substr(0, end)}, {"in", "query"}, {"schema", {{"type", "string"}}}});
      rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    }
    if (route.method == "POST") {
      parameters.push_back({{"name", "Idempotency-Key"},
                            {"in", "header"},
                            {"schema", {{"type", "string"}, {"maxLength", 200}}}});
    }
    if (!parameters.empty()) {
      operation["parameters"] = std::move(parameters);
    }
    if (!route.request.empty()) {
      operation["requestBody"]["content"]["application/json"]["schema"] = reference(route.request);
    }
    auto& good = operation["responses"][std::to_string(route.status)];
    good["description"] = route.summary;
    if (!route.response.empty()) {
      good["content"]["application/json"]["schema"] = reference(route.response);
    }
    auto& bad = operation["responses"]["default"];
    bad["description"] =
        "Problem details (RFC 9457) with a stable code: those of docs/formats/controller-api.md; "
        "unknown_outcome says that the change may or may not have been made";
    bad["content"]["application/problem+json"]["schema"] = reference("Problem");
    operation["security"] = route.role == ApiRole::kNobody
                                ? json::array()
                                : json::array({json{{"token", json::array()}}});
    std::string method(route.method);
    for (auto& c : method) {
      c = static_cast<char>(c - 'A' + 'a');
    }
    paths["/api/v1" + std::string(route.path)][method] = std::move(operation);
  }
  return {{"openapi", "3.1.0"},
          {"info", {{"title", "Verger controller"}, {"version", version}}},
          {"paths", std::move(paths)},
          {"components",
           {{"schemas", std::move(schemas)},
            {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

}  // namespace verger::controller
