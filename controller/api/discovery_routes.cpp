#include <algorithm>
#include <fmt/format.h>
#include <set>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/members.h"
#include "controller/api/routes.h"
#include "controller/cluster/gather.h"
#include "controller/cluster/peers.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/loopback.h"

// /discoveries: the members of a cluster as one of its nodes knows them, ready to be registered.
namespace verger::controller {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kAgentLook{3};
constexpr std::string_view kAgentName = "urn:verger:agent:";

bool is_address(std::string_view host) {
  return host.find(':') != std::string_view::npos ||
         std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

/// "n1" of "n1.db.example.com" where that tells all of them apart; else n1, n2, ... by URL.
std::vector<std::string> names_for(const std::vector<http::Endpoint>& nodes) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const auto& node : nodes) {
    auto label = node.host.substr(0, node.host.find('.'));
    if (is_address(node.host) || !seen.insert(label).second) {
      out.clear();
      break;
    }
    out.push_back(std::move(label));
  }
  for (std::size_t i = out.size(); i < nodes.size(); ++i) {
    out.push_back(fmt::format("n{}", i + 1));
  }
  return out;
}

/// What answers where an agent would be: its URL, and who it is if it has enrolled.
struct AgentFound {
  std::string url{};
  std::string enrolled_as{};
};

net::awaitable<AgentFound> look_for_agent(Network network, std::string trusted_roots,
                                          http::Endpoint where) {
  where.tls = true;
  if (network.served_certificate) {
    if (const auto shown = co_await network.served_certificate(where)) {
      AgentFound out{.url = where.url()};
      for (const auto& uri : shown->uris) {
        if (uri.starts_with(kAgentName)) {
          out.enrolled_as = uri.substr(kAgentName.size());
        }
      }
      co_return out;
    }
  }
  where.tls = false;
  if (!http::is_loopback(where.host) || !network.clients_of) {
    co_return AgentFound{};
  }
  const auto clients = network.clients_of(trusted_roots);
  if (!clients) {
    co_return AgentFound{};
  }
  http::Request request;
  request.target = "/agent/v1/facts";
  const auto answer = co_await clients->agents->send(where, std::move(request), kAgentLook);
  co_return answer && answer->status == 200 ? AgentFound{.url = where.url()} : AgentFound{};
}

/// Which cluster has this node registered already; empty: none.
std::string registered_in(const Registry& registry, const http::Endpoint& node) {
  for (const auto& cluster : registry.list()) {
    for (const auto& each : cluster.nodes) {
      if (const auto url = http::parse_endpoint(each.url); url && *url == node) {
        return cluster.name;
      }
    }
  }
  return {};
}

net::awaitable<Result<http::Response>> discover(const ApiParts& parts, Call call) {
  VERGER_CO_TRY(const auto body, parse_body(call.body()));
  Members members(body);
  const auto url = members.text("url");
  const auto name = members.text("name");
  ClusterConfig asked;
  asked.name = "discovery";
  asked.credentials = members.text("credentials");
  asked.trusted_roots = members.text("trusted_roots");
  const auto agent_port = members.number("agent_port", http::kAgentPort);
  VERGER_CO_RETURN_IF_ERROR(members.finish());
  const auto first = http::parse_endpoint(url, http::kNodePort);
  if (!first) {
    co_return problem_of(first.error().within("url"));
  }
  if (agent_port < 1 || agent_port > 65'535) {
    co_return problem(400, "bad_request", "agent_port must be 1 to 65535");
  }
  asked.nodes.push_back({.name = "first", .url = first->url(), .agent_url = {}});
  if (const auto sent = parts.observer.check_credentials(asked); !sent) {
    co_return problem(422, "credentials_refused", sent.error().message);
  }
  Peers peers(parts.network, asked);
  const auto gossip = co_await peers.gossip("first");
  if (!gossip) {
    co_return problem(422, "cluster_unreachable",
                      fmt::format("{}: {}", first->url(), gossip.error().message));
  }

  std::vector<std::pair<http::Endpoint, api::GossipMember>> found;
  for (const auto& member : gossip->members) {
    if (member.state == api::NodeState::kManager || member.http_ip.empty()) {
      continue;
    }
    http::Endpoint node{.tls = first->tls,
                        .host = member.http_ip,
                        .port = static_cast<std::uint16_t>(member.http_port)};
    if (member.http_ip == gossip->server_ip && member.http_port == gossip->server_port &&
        is_address(node.host)) {
      node = *first;  // by the name by which it was reached, which its certificate has
    }
    found.emplace_back(std::move(node), member);
  }
  std::ranges::sort(found, {}, [](const auto& each) { return each.first; });
  std::vector<http::Endpoint> endpoints;
  endpoints.reserve(found.size());
  for (const auto& [endpoint, member] : found) {
    endpoints.push_back(endpoint);
  }
  const auto names = names_for(endpoints);
  std::vector<net::awaitable<AgentFound>> looks;
  looks.reserve(endpoints.size());
  for (const auto& endpoint : endpoints) {
    looks.push_back(look_for_agent(
        parts.network, asked.trusted_roots,
        {.tls = true, .host = endpoint.host, .port = static_cast<std::uint16_t>(agent_port)}));
  }
  const auto agents = co_await gather(std::move(looks));

  auto nodes = json::array();
  auto proposed = json::array();
  auto notes = json::array();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& [endpoint, member] = found[i];
    const auto& agent = agents[i];
    const auto registered = registered_in(parts.registry, endpoint);
    nodes.push_back(
        {{"name", names[i]},
         {"url", endpoint.url()},
         {"agent", agent.url.empty() ? json() : json(agent.url)},
         {"agent_enrolled_as", agent.enrolled_as.empty() ? json() : json(agent.enrolled_as)},
         {"state", api::to_string(member.state)},
         {"is_alive", member.is_alive},
         {"is_read_only_replica", member.is_read_only_replica},
         {"version", member.es_version},
         {"registered_in", registered.empty() ? json() : json(registered)}});
    json entry{{"name", names[i]}, {"node", endpoint.url()}};
    if (!agent.url.empty()) {
      entry["agent"] = agent.url;
    }
    proposed.push_back(std::move(entry));
    if (!registered.empty()) {
      notes.push_back(
          fmt::format("{} is a node of cluster {} already", endpoint.url(), registered));
    }
    if (!member.is_alive) {
      notes.push_back(fmt::format("{} is not alive, as {} sees it", endpoint.url(), first->url()));
    }
    ClusterConfig one = asked;
    one.nodes = {{.name = names[i], .url = endpoint.url(), .agent_url = {}}};
    if (const auto sent = parts.observer.check_credentials(one); !sent) {
      notes.push_back(sent.error().message);
    }
  }
  if (asked.credentials.empty()) {
    notes.push_back(
        "without credentials vergerd can only look at servers that ask for them: put a file with "
        "user, "
        "password and hosts into its credentials directory and name it");
  }
  json registration{{"name", name.empty() ? "NAME" : name},
                    {"nodes", std::move(proposed)},
                    {"credentials", asked.credentials},
                    {"trusted_roots", asked.trusted_roots}};
  co_return json_answer(200, {{"asked", first->url()},
                              {"nodes", std::move(nodes)},
                              {"notes", std::move(notes)},
                              {"registration", std::move(registration)}});
}

}  // namespace

std::span<const Route> discovery_routes() {
  using enum ApiRole;
  static constexpr Route kRoutes[] = {
      {"POST", "/discoveries", kAdmin, "discoverCluster",
       "The members of a cluster by the gossip of one node, ready to be registered", 200,
       "NewDiscovery", "Discovery", "", discover, OnRecord::kAudited},
  };
  return kRoutes;
}

}  // namespace verger::controller
