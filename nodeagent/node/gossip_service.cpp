// Gossip over HTTP: POST /verger/v1/gossip, the same message both ways
// (docs/formats/replication.md).
#include <nlohmann/json.hpp>

#include "nodeagent/node/detail/core.h"

namespace verger::node {
namespace {

constexpr int kFastRounds = 20;
constexpr std::chrono::milliseconds kFastInterval{100};

std::string gossip_body(Core& core) {
  core.members.set_self(core.describe_self());
  auto members = nlohmann::json::array();
  for (const auto& [id, member] : core.members.all()) {
    members.push_back(to_json(member));
  }
  return nlohmann::json({{"from", core.self},
                         {"clusterSize", core.options.cluster_size},
                         {"members", std::move(members)}})
      .dump();
}

/// Returns the sender's name; empty when it is not gossip.
NodeId take_gossip(Core& core, const std::string& body) {
  const auto message = nlohmann::json::parse(body, nullptr, false);
  if (!message.is_object() || !message.contains("from") || !message["from"].is_string() ||
      !message.contains("members") || !message["members"].is_array()) {
    return {};
  }
  const auto from = message["from"].get<std::string>();
  for (const auto& entry : message["members"]) {
    const auto member = parse_member(entry);
    if (!member) {
      core.env.log.warning("gossip entry ignored",
                           {{"from", from}, {"reason", member.error().message}});
      continue;
    }
    core.members.merge(*member, node_id(member->http) == from, core.now());
  }
  return from;
}

}  // namespace

net::awaitable<void> gossip_with(std::shared_ptr<Core> core, http::Endpoint peer) {
  http::Request request;
  request.method = "POST";
  request.target = "/verger/v1/gossip";
  request.headers.set("Content-Type", "application/json");
  request.body = gossip_body(*core);
  const auto response = co_await core->env.client.send(peer, std::move(request),
                                                       core->options.timings.gossip_timeout);
  if (!core->serving()) {
    co_return;
  }
  const auto problem = !response ? response.error().message
                       : response->status != 200
                           ? fmt::format("{}: answered {}", peer.url(), response->status)
                           : std::string();
  if (auto& told = core->gossip_problems[node_id(peer)]; told != problem) {
    told = problem;
    if (!problem.empty()) {
      core->env.log.warning("no gossip with another node",
                            {{"node", core->self}, {"peer", peer.url()}, {"reason", problem}});
    }
  }
  if (!response || response->status != 200 || take_gossip(*core, response->body).empty()) {
    core->members.mark_dead(node_id(peer), core->now());
  }
}

net::awaitable<void> gossip_loop(std::shared_ptr<Core> core) {
  for (int round = 0; core->serving(); ++round) {
    core->members.sweep(core->now(), core->env.clock.now());
    for (auto& peer : core->members.others()) {
      core->tasks->spawn(gossip_with(core, peer));
    }
    const auto interval = core->options.timings.gossip_interval;
    co_await core->env.timers.sleep_for(round < kFastRounds ? std::min(interval, kFastInterval)
                                                            : interval);
  }
}

http::Response answer_gossip(Core& core, const std::string& body) {
  if (!core.serving()) {
    return {.status = 503};
  }
  if (take_gossip(core, body).empty()) {
    return {.status = 400, .body = "not a gossip message"};
  }
  http::Response response;
  response.headers.set("Content-Type", "application/json");
  response.body = gossip_body(core);
  return response;
}

}  // namespace verger::node
