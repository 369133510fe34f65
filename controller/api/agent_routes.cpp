#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/members.h"
#include "controller/api/routes.h"
#include "nodeagent/http/client.h"

// /agents: who has enrolled, one-time tokens, and enrolling itself.
namespace verger::controller {
namespace {

using nlohmann::json;

constexpr std::int64_t kTokenSeconds = 3600;

json view_of(const EnrolledAgent& agent) {
  return {{"cluster", agent.cluster},
          {"node", agent.node},
          {"serial", agent.serials.back()},
          {"hosts", agent.hosts},
          {"not_after", format_ticks(agent.not_after)},
          {"renew_at", format_ticks(AgentBook::renew_at(agent))},
          {"enrolled_at", format_ticks(agent.enrolled_at)},
          {"authority", agent.authority}};
}

json view_of(const OpenAgentToken& token, Ticks now) {
  return {{"cluster", token.cluster},
          {"node", token.node},
          {"id", token.id},
          {"hosts", token.hosts},
          {"created_by", token.created_by},
          {"expires_at", format_ticks(token.expires_at)},
          {"expired", now >= token.expires_at}};
}

/// An address in brackets, as a URL has it, goes into a certificate without.
std::string bare(const std::string& host) {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

http::Response no_authority() {
  return problem(503, "unavailable", "this controller has no authority for agents");
}

http::Response list_agents(const ApiParts& parts, const Call& /*call*/) {
  if (parts.agents == nullptr) {
    return json_answer(200, {{"agents", json::array()}, {"tokens", json::array()}});
  }
  auto agents = json::array();
  for (const auto& agent : parts.agents->agents()) {
    agents.push_back(view_of(agent));
  }
  auto tokens = json::array();
  for (const auto& token : parts.agents->open_tokens()) {
    tokens.push_back(view_of(token, parts.clock.now()));
  }
  return json_answer(200, {{"agents", std::move(agents)}, {"tokens", std::move(tokens)}});
}

Result<http::Response> create_agent_token(const ApiParts& parts, const Call& call) {
  if (parts.agents == nullptr) {
    return no_authority();
  }
  VERGER_TRY(const auto body, parse_body(call.body()));
  Members members(body);
  const auto cluster = members.text("cluster");
  const auto node = members.text("node");
  const auto seconds = members.number("valid_for_seconds", kTokenSeconds);
  const auto* given = members.array("hosts");
  VERGER_RETURN_IF_ERROR(members.finish());
  if (cluster.empty() || node.empty()) {
    return problem(400, "bad_request", "the body must be {\"cluster\": ..., \"node\": ...}");
  }
  std::vector<std::string> hosts;
  for (std::size_t i = 0; given != nullptr && i < given->size(); ++i) {
    if (!(*given)[i].is_string()) {
      return problem(400, "bad_request", "hosts must be an array of strings");
    }
    hosts.push_back(bare((*given)[i].get<std::string>()));
  }
  // A cluster may be registered later, when its agents run. One that is there must have the node,
  // unless the node is to join it: then its host is known from the request alone.
  if (const auto config = parts.registry.find(cluster)) {
    const auto* found = config->find(node);
    if (found == nullptr && hosts.empty()) {
      return problem(
          404, "not_found",
          fmt::format("cluster {0} has no node {1}; see: verger cluster show {0}. For a "
                      "node that is to join it, name the host of its agent: verger agent "
                      "token {0}/{1} --host HOST",
                      cluster, node));
    }
    if (const auto url = found == nullptr
                             ? Result<http::Endpoint>(Error{Errc::kNotFound, ""})
                             : http::parse_endpoint(found->agent_url, http::kAgentPort)) {
      const auto host = bare(url->host);
      if (std::ranges::find(hosts, host) == hosts.end()) {
        hosts.push_back(host);
      }
    }
  }
  VERGER_TRY(const auto created,
             parts.agents->create_token(cluster, node, std::move(hosts),
                                        std::chrono::seconds(seconds), call.by()));
  auto out = view_of(created.token, parts.clock.now());
  out["token"] = created.secret;
  out["controller"] = parts.reached_at.empty() ? json() : json(parts.reached_at);
  out["pins_controller"] = parts.api_of_agents_authority;
  auto answer = json_answer(201, out);
  answer.headers.set("Cache-Control", "no-store");
  return answer;
}

Result<http::Response> enrol_agent(const ApiParts& parts, const Call& call) {
  VERGER_TRY(const auto body, parse_body(call.body()));
  if (!body.value("token", json()).is_string() || !body.value("request", json()).is_string()) {
    return problem(400, "bad_request",
                   "the body must be {\"token\": ..., \"request\": a PEM certificate request}");
  }
  if (parts.agents == nullptr) {
    return no_authority();
  }
  const auto enrolled = parts.agents->enrol(body.at("token").get<std::string>(),
                                            body.at("request").get<std::string>());
  if (!enrolled) {
    switch (enrolled.error().code) {
      case Errc::kUnauthorized:
        return problem(401, "token_unknown", enrolled.error().message);
      case Errc::kConflict:
        return problem(409, "token_used", enrolled.error().message);
      case Errc::kTimeout:
        return problem(403, "token_expired", enrolled.error().message);
      default:
        return problem_of(enrolled.error());
    }
  }
  return json_answer(200, {{"cluster", enrolled->cluster},
                           {"node", enrolled->node},
                           {"certificate", enrolled->certificate},
                           {"authority", enrolled->authority},
                           {"not_after", format_ticks(enrolled->not_after)}});
}

http::Response forget_agent(const ApiParts& parts, const Call& call) {
  if (parts.agents == nullptr) {
    return no_authority();
  }
  const auto forgotten = parts.agents->forget(call.named("cluster"), call.named("node"), call.by());
  return forgotten ? no_content() : problem_of(forgotten.error());
}

}  // namespace

std::span<const Route> agent_routes() {
  using enum ApiRole;
  static constexpr Route kRoutes[] = {
      {"GET", "/agents", kViewer, "listAgents", "The agents that have enrolled, and open tokens",
       200, "", "Agents", "", list_agents},
      {"POST", "/agents/tokens", kAdmin, "createAgentToken",
       "A one-time token for an agent to enrol; shown once", 201, "NewAgentToken", "AgentToken", "",
       create_agent_token, OnRecord::kAudited},
      {"POST", "/agents/enrol", kNobody, "enrolAgent", "A certificate for a one-time token", 200,
       "AgentEnrolment", "AgentCertificate", "", enrol_agent, OnRecord::kByItself},
      {"DELETE", "/agents/{cluster}/{node}", kAdmin, "forgetAgent",
       "Accept an agent's certificate no more", 204, "", "", "", forget_agent},
  };
  return kRoutes;
}

}  // namespace verger::controller
