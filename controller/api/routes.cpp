#include "controller/api/routes.h"

#include <string>

#include <nlohmann/json.hpp>

namespace verger::controller {
namespace {

using nlohmann::json;
using enum ApiRole;

constexpr Route kRoutes[] = {
    {"GET", "/clusters", kViewer, "listClusters", "The registered clusters", 200, "", "Clusters",
     "limit cursor"},
    {"POST", "/clusters", kAdmin, "addCluster", "Register a cluster", 201, "NewCluster", "Cluster",
     ""},
    {"GET", "/clusters/{name}", kViewer, "getCluster", "One cluster as it is now", 200, "",
     "Cluster", ""},
    {"DELETE", "/clusters/{name}", kAdmin, "removeCluster", "Forget a cluster", 204, "", "", ""},
    {"GET", "/clusters/{name}/plans", kViewer, "listPlans", "Plans made for a cluster", 200, "",
     "Plans", "limit cursor"},
    {"POST", "/clusters/{name}/plans", kOperator, "makePlan", "Plan; nothing is touched", 201,
     "NewPlan", "Plan", ""},
    {"GET", "/clusters/{name}/schedule", kViewer, "getSchedule", "Next openings and due times", 200,
     "", "Schedule", "zone"},
    {"POST", "/clusters/{name}/pause", kOperator, "pauseCluster", "Start nothing, pause what runs",
     202, "Pause", "Cluster", ""},
    {"POST", "/clusters/{name}/resume", kOperator, "resumeCluster", "End a cluster's pause", 202,
     "Empty", "Cluster", ""},
    {"GET", "/plans/{hash}", kViewer, "getPlan", "One plan", 200, "", "Plan", ""},
    {"POST", "/plans/{hash}/apply", kOperator, "applyPlan", "Carry a plan out", 202, "Empty", "Run",
     ""},
    {"GET", "/runs", kViewer, "listRuns", "Runs, newest first", 200, "", "Runs",
     "cluster limit cursor"},
    {"GET", "/runs/{id}", kViewer, "getRun", "One run", 200, "", "Run", ""},
    {"POST", "/runs/{id}/pause", kOperator, "pauseRun", "Begin no new step", 202, "Pause", "Run",
     ""},
    {"POST", "/runs/{id}/resume", kOperator, "resumeRun", "Go on after a fresh look", 202, "Empty",
     "Run", ""},
    {"POST", "/runs/{id}/cancel", kOperator, "cancelRun", "End in a safe state", 202, "Empty",
     "Run", ""},
    {"POST", "/runs/{id}/skip", kOperator, "skipNode", "Leave a node out", 202, "Skip", "Run", ""},
    {"GET", "/policies", kViewer, "listPolicies", "The policies that are followed", 200, "",
     "Policies", "limit cursor"},
    {"POST", "/policies/validate", kViewer, "validatePolicy", "Say everything that is wrong", 200,
     "PolicyText", "Policy", ""},
    {"POST", "/policies/diff", kViewer, "diffPolicy", "What applying would change", 200,
     "PolicyText", "PolicyDiff", ""},
    {"GET", "/policies/{name}", kViewer, "getPolicy", "One policy", 200, "", "Policy", ""},
    {"PUT", "/policies/{name}", kAdmin, "applyPolicy", "Follow a policy", 200, "PolicyText",
     "Policy", ""},
    {"DELETE", "/policies/{name}", kAdmin, "deletePolicy", "Follow it no more", 204, "", "", ""},
    {"GET", "/events", kViewer, "getEvents", "The journal's events; server-sent where asked for",
     200, "", "Events", "after run wait"},
    {"GET", "/audit", kAdmin, "getAudit", "Who asked for what, from where, and why", 200, "",
     "Audit", "after"},
    {"GET", "/audit/verify", kAdmin, "verifyAudit", "Walk the journal's hash chain", 200, "",
     "AuditVerified", ""},
    {"GET", "/tokens", kAdmin, "listTokens", "Tokens, without their secrets", 200, "", "Tokens",
     "limit cursor"},
    {"POST", "/tokens", kAdmin, "createToken", "A new token; its secret is shown once", 201,
     "NewToken", "TokenSecret", ""},
    {"DELETE", "/tokens/{id}", kAdmin, "revokeToken", "A token that opens nothing any more", 204,
     "", "", ""},
    {"GET", "/agents", kViewer, "listAgents", "The agents that have enrolled, and open tokens", 200,
     "", "Agents", ""},
    {"POST", "/agents/tokens", kAdmin, "createAgentToken",
     "A one-time token for an agent to enrol; shown once", 201, "NewAgentToken", "AgentToken", ""},
    {"POST", "/agents/enrol", kNobody, "enrolAgent", "A certificate for a one-time token", 200,
     "AgentEnrolment", "AgentCertificate", ""},
    {"DELETE", "/agents/{cluster}/{node}", kAdmin, "forgetAgent",
     "Accept an agent's certificate no more", 204, "", "", ""},
    {"GET", "/openapi.json", kNobody, "getOpenApi", "This document", 200, "", "Any", ""},
    {"GET", "/health", kNobody, "getHealth", "Whether the controller answers", 200, "", "Health",
     ""},
};

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> out;
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    const auto end = path.find('/');
    out.push_back(path.substr(0, end));
    path = end == std::string_view::npos ? "" : path.substr(end);
  }
  return out;
}

bool is_variable(std::string_view part) { return part.starts_with('{'); }

/// How exactly a route fits: fixed parts count; -1: not at all.
int fit(const Route& route, std::span<const std::string> segments) {
  const auto parts = split(route.path);
  if (parts.size() != segments.size()) {
    return -1;
  }
  int fixed = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (is_variable(parts[i])) {
      if (segments[i].empty()) {
        return -1;
      }
    } else if (parts[i] == segments[i]) {
      ++fixed;
    } else {
      return -1;
    }
  }
  return fixed;
}

/// What a schema must have; everything may have more.
json schema_of(std::string_view name) {
  const auto object = [](std::initializer_list<std::pair<const char*, json>> members) {
    json properties = json::object();
    json required = json::array();
    for (const auto& [key, type] : members) {
      properties[key] = type;
      required.push_back(key);
    }
    return json{{"type", "object"}, {"required", required}, {"properties", properties}};
  };
  const json text{{"type", "string"}};
  const json number{{"type", "integer"}};
  const json list{{"type", "array"}};
  const json truth{{"type", "boolean"}};
  const auto list_of = [](const char* member) {
    return json{{"type", "array"},
                {"items", {{"$ref", std::string("#/components/schemas/") + member}}}};
  };
  if (name == "NewCluster") {
    return object({{"name", text}, {"nodes", list}});
  }
  if (name == "Cluster") {
    return object({{"name", text}, {"nodes", list}, {"paused", truth}});
  }
  if (name == "Clusters") {
    return object({{"clusters", list_of("Cluster")}});
  }
  if (name == "NewPlan") {
    return object({{"operation", text}});
  }
  if (name == "Plan") {
    return object({{"hash", text}, {"cluster", text}, {"stages", list}, {"notes", list}});
  }
  if (name == "Plans") {
    return object({{"plans", list_of("Plan")}});
  }
  if (name == "Run") {
    return object(
        {{"id", text}, {"cluster", text}, {"plan", text}, {"state", text}, {"stages", list}});
  }
  if (name == "Runs") {
    return object({{"runs", list_of("Run")}});
  }
  if (name == "Policy") {
    return object({{"name", text}, {"enabled", truth}, {"schedule", list}, {"catch_up", text}});
  }
  if (name == "Policies") {
    return object({{"policies", list_of("Policy")}});
  }
  if (name == "PolicyText") {
    return object({{"yaml", text}});
  }
  if (name == "PolicyDiff") {
    return object({{"name", text}, {"known", truth}, {"changes", list}});
  }
  if (name == "Schedule") {
    return object({{"cluster", text}, {"zone", text}, {"times", list}});
  }
  if (name == "Skip") {
    return object({{"node", text}});
  }
  if (name == "Events") {
    return object({{"events", list}, {"next", number}});
  }
  if (name == "Audit") {
    return object({{"entries", list}, {"next", number}});
  }
  if (name == "AuditVerified") {
    return object({{"verified", number}});
  }
  if (name == "NewToken") {
    return object({{"name", text}, {"role", text}});
  }
  if (name == "TokenSecret") {
    return object({{"id", text}, {"name", text}, {"role", text}, {"token", text}});
  }
  if (name == "Tokens") {
    return object({{"tokens", list}});
  }
  if (name == "Agents") {
    return object({{"agents", list}, {"tokens", list}});
  }
  if (name == "NewAgentToken") {
    return object({{"cluster", text}, {"node", text}});
  }
  if (name == "AgentToken") {
    return object({{"id", text}, {"cluster", text}, {"node", text}, {"token", text}});
  }
  if (name == "AgentEnrolment") {
    return object({{"token", text}, {"request", text}});
  }
  if (name == "AgentCertificate") {
    return object({{"cluster", text}, {"node", text}, {"certificate", text}, {"authority", text}});
  }
  if (name == "Health") {
    return object({{"status", text}, {"version", text}, {"controller_epoch", number}});
  }
  if (name == "Problem") {
    return object(
        {{"type", text}, {"title", text}, {"status", number}, {"code", text}, {"detail", text}});
  }
  return json{{"type", "object"}};  // Pause, Empty, Any
}

}  // namespace

std::string_view to_string(ApiRole role) {
  switch (role) {
    case kNobody:
      return "nobody";
    case kViewer:
      return "viewer";
    case kOperator:
      return "operator";
    case kAdmin:
      return "admin";
  }
  return "";
}

std::span<const Route> api_routes() { return kRoutes; }

const Route* find_route(std::string_view method, std::span<const std::string> segments,
                        std::vector<std::string_view>& methods) {
  const Route* best = nullptr;
  int best_fit = -1;
  for (const auto& route : kRoutes) {
    const int fits = fit(route, segments);
    if (fits < 0) {
      continue;
    }
    methods.push_back(route.method);
    if (route.method == method && fits > best_fit) {
      best = &route;
      best_fit = fits;
    }
  }
  return best;
}

json openapi_document(std::string_view version) {
  json paths = json::object();
  json schemas{{"Problem", schema_of("Problem")}};
  const auto reference = [&schemas](std::string_view name) {
    schemas[std::string(name)] = schema_of(name);
    return json{{"$ref", "#/components/schemas/" + std::string(name)}};
  };
  for (const auto& route : kRoutes) {
    json operation{
        {"operationId", route.id}, {"summary", route.summary}, {"x-role", to_string(route.role)}};
    auto parameters = json::array();
    for (const auto part : split(route.path)) {
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
    operation["security"] =
        route.role == kNobody ? json::array() : json::array({json{{"token", json::array()}}});
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
