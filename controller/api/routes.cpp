#include "controller/api/routes.h"

#include <string>

namespace verger::controller {
namespace {

using enum ApiRole;

constexpr Route kRoutes[] = {
    {"GET", "/clusters", kViewer, "listClusters", "The registered clusters", 200, "", "Clusters",
     "limit cursor look"},
    {"POST", "/clusters", kAdmin, "addCluster", "Register a cluster", 201, "NewCluster", "Cluster",
     ""},
    {"GET", "/clusters/{name}", kViewer, "getCluster", "One cluster as it is now", 200, "",
     "Cluster", ""},
    {"PATCH", "/clusters/{name}", kAdmin, "updateCluster",
     "Change nodes, credentials, roots or labels in place", 200, "ClusterChanges", "Cluster", ""},
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
    {"GET", "/runs/{id}/gates", kViewer, "getRunGates",
     "The gates of the steps that wait or are under way, open ones too", 200, "", "RunGates", ""},
    {"POST", "/runs/{id}/pause", kOperator, "pauseRun", "Begin no new step", 202, "RunPause", "Run",
     ""},
    {"POST", "/runs/{id}/resume", kOperator, "resumeRun",
     "Resume after a fresh look; also while windows are closed", 202, "Resume", "Run", ""},
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
    {"GET", "/events", kViewer, "getEvents",
     "The journal's events that the role may see; server-sent where asked for", 200, "", "Events",
     "after run wait"},
    {"GET", "/audit", kAdmin, "getAudit", "Who asked for what, from where, and why", 200, "",
     "Audit", "after all"},
    {"GET", "/audit/verify", kAdmin, "verifyAudit", "Walk the journal's hash chain", 200, "",
     "AuditVerified", ""},
    {"GET", "/admin/journal", kAdmin, "getJournal", "What the journal takes", 200, "", "Journal",
     ""},
    {"POST", "/admin/compact", kAdmin, "compactJournal",
     "Remove from the journal what is not kept any longer", 200, "Empty", "Compaction", ""},
    {"GET", "/tokens", kAdmin, "listTokens", "Tokens, without their secrets", 200, "", "Tokens",
     "limit cursor"},
    {"POST", "/tokens", kAdmin, "createToken", "A new token; its secret is shown once", 201,
     "NewToken", "TokenSecret", ""},
    {"DELETE", "/tokens/{id}", kAdmin, "revokeToken", "Revoke a token", 204, "", "", ""},
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

/// Takes the first part off a path that is not empty.
std::string_view next_part(std::string_view& path) {
  path.remove_prefix(1);
  const auto part = path.substr(0, path.find('/'));
  path.remove_prefix(part.size());
  return part;
}

/// How exactly a route fits: fixed parts count; -1: not at all.
int fit(const Route& route, std::span<const std::string> segments) {
  int fixed = 0;
  auto rest = route.path;
  for (const auto& segment : segments) {
    if (rest.empty()) {
      return -1;
    }
    const auto part = next_part(rest);
    if (is_variable(part)) {
      if (segment.empty()) {
        return -1;
      }
    } else if (part == segment) {
      ++fixed;
    } else {
      return -1;
    }
  }
  return rest.empty() ? fixed : -1;
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

std::vector<std::string_view> path_parts(std::string_view path) {
  std::vector<std::string_view> out;
  while (path.starts_with('/')) {
    out.push_back(next_part(path));
  }
  return out;
}

bool is_variable(std::string_view part) { return part.starts_with('{'); }

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

}  // namespace verger::controller
