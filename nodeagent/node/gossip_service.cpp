#include "nodeagent/node/detail/gossip_service.h"

#include <fmt/format.h>

namespace verger::node {
namespace {

constexpr int kFastRounds = 20;
constexpr std::chrono::milliseconds kFastInterval{100};

}  // namespace

GossipService::GossipService(NodeContext& context, std::function<Member()> describe_self)
    : context_(context),
      describe_self_(std::move(describe_self)),
      members_(context.options.timings.dead_member_removal) {}

void GossipService::add_seeds() {
  for (const auto& seed : context_.options.gossip_seeds) {
    members_.add_seed(seed, context_.env.clock.now());
  }
}

void GossipService::start() {
  const auto& options = context_.options;
  if (options.cluster_size > 1 || options.read_only_replica || !options.gossip_seeds.empty()) {
    context_.spawn(loop(context_.keep(*this)));
  }
}

void GossipService::tick(const std::optional<NodeId>& leader) {
  const auto lag = context_.options.misbehaviour.gossip_lag;
  if (lag.count() == 0) {
    return;
  }
  refresh_self();
  const auto now = context_.now();
  past_.emplace_back(now, members_.view(leader));
  while (past_.size() > 1 && now - past_[1].first >= lag) {
    past_.pop_front();
  }
}

void GossipService::refresh_self() { members_.set_self(describe_self_()); }

std::vector<Member> GossipService::view(const std::optional<NodeId>& leader) const {
  return past_.empty() ? members_.view(leader) : past_.front().second;
}

void GossipService::look_after(const NodeId& id) {
  if (const auto* member = members_.find(id)) {
    context_.spawn(exchange(context_.keep(*this), member->http));
  }
}

std::string GossipService::message() {
  refresh_self();
  api::JsonWriter out(2'048);
  out.begin_object()
      .member("from", context_.self)
      .member("clusterSize", context_.options.cluster_size)
      .name("members")
      .begin_list();
  for (const auto& [id, member] : members_.all()) {
    write(out, member);
  }
  return out.end_list().end_object().take();
}

NodeId GossipService::take(const std::string& body) {
  const auto message = api::JsonDocument::parse(body, "gossip");
  if (!message) {
    return {};
  }
  const auto sender = message->root().find("from");
  const auto members = message->root().find("members");
  if (!sender || !sender->is_string() || !members || !members->is_array()) {
    return {};
  }
  const auto from = sender->string();
  for (const auto& entry : members->values()) {
    const auto member = parse_member(entry);
    if (!member) {
      context_.env.log.warning("gossip entry ignored",
                               {{"from", from}, {"reason", member.error().message}});
      continue;
    }
    members_.merge(*member, node_id(member->http) == from, context_.now());
  }
  return from;
}

void GossipService::tell_problem(const http::Endpoint& peer, const std::string& problem) {
  auto& reported = problems_[node_id(peer)];
  if (reported == problem) {
    return;
  }
  reported = problem;
  if (!problem.empty()) {
    context_.env.log.warning("no gossip with another node",
                             {{"node", context_.self}, {"peer", peer.url()}, {"reason", problem}});
  }
}

net::awaitable<void> GossipService::exchange(std::shared_ptr<GossipService> service,
                                             http::Endpoint peer) {
  const auto& context = service->context_;
  http::Request request;
  request.method = "POST";
  request.target = "/verger/v1/gossip";
  request.headers.set("Content-Type", "application/json");
  request.body = service->message();
  const auto response = co_await context.env.client.send(peer, std::move(request),
                                                         context.options.timings.gossip_timeout);
  if (!context.serving()) {
    co_return;
  }
  service->tell_problem(peer, !response ? response.error().message
                              : response->status != 200
                                  ? fmt::format("{}: answered {}", peer.url(), response->status)
                                  : std::string());
  if (!response || response->status != 200 || service->take(response->body).empty()) {
    service->members_.mark_dead(node_id(peer), context.now());
  }
}

net::awaitable<void> GossipService::loop(std::shared_ptr<GossipService> service) {
  auto& context = service->context_;
  for (int round = 0; context.serving(); ++round) {
    service->members_.sweep(context.now(), context.env.clock.now());
    for (auto& peer : service->members_.others()) {
      context.spawn(exchange(service, peer));
    }
    const auto interval = context.options.timings.gossip_interval;
    co_await context.env.timers.sleep_for(round < kFastRounds ? std::min(interval, kFastInterval)
                                                              : interval);
  }
}

http::Response GossipService::answer(const std::string& body) {
  if (!context_.serving()) {
    return {.status = 503};
  }
  if (take(body).empty()) {
    return {.status = 400, .body = "not a gossip message"};
  }
  http::Response response;
  response.headers.set("Content-Type", "application/json");
  response.body = message();
  return response;
}

}  // namespace verger::node
