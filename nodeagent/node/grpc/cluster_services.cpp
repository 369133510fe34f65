// Gossip, Monitoring and ServerFeatures; and the services between nodes, which refuse each caller.
#include <algorithm>
#include <cctype>
#include <event_store/gossip.pb.h>
#include <event_store/monitoring.pb.h>
#include <event_store/server_features.pb.h>

#include <nlohmann/json.hpp>

#include "nodeagent/node/grpc/service_base.h"
#include "nodeagent/node/node_api.h"

namespace verger::node::rpc {
namespace {

using ::verger::grpc::Status;
namespace es = event_store::client;

/// A period of 0 would keep the node busy; the server sends without a pause.
constexpr std::chrono::milliseconds kShortestStatsPeriod{10};

net::awaitable<Status> read_gossip(NodeCall at) {
  const auto request = co_await at.call->only<es::Empty>();
  if (!request) {
    co_return request.error();
  }
  es::gossip::ClusterInfo info;
  for (const auto& member : at.core->gossip->view(at.core->election->leader())) {
    auto& out = *info.add_members();
    write_uuid(member.instance, false, *out.mutable_instance_id());
    out.set_time_stamp(member.timestamp.value() - kUnixEpoch.value());
    out.set_state(static_cast<es::gossip::MemberInfo::VNodeState>(member.state));
    out.set_is_alive(member.alive);
    out.mutable_http_end_point()->set_address(member.http.host);
    out.mutable_http_end_point()->set_port(member.http.port);
  }
  co_await at.call->write(info);
  co_return Status{};
}

std::string stat_text(const nlohmann::ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

net::awaitable<Status> stats(NodeCall at) {
  const auto request = co_await at.call->only<es::monitoring::StatsReq>();
  if (!request) {
    co_return request.error();
  }
  constexpr std::uint64_t kLongestPeriod = 86'400'000;
  const std::chrono::milliseconds wanted(
      std::min<std::uint64_t>(request->refresh_time_period_in_ms(), kLongestPeriod));
  const auto period = std::max(wanted, kShortestStatsPeriod);
  while (at.core->serving()) {
    es::monitoring::StatsResp response;
    for (const auto& [name, value] : flat_stats(*at.core).items()) {
      (*response.mutable_stats())[name] = stat_text(value);
    }
    if (!co_await at.call->write(response)) {
      break;
    }
    // In pieces, so that a call that has ended soon leaves nothing behind.
    const auto until = at.core->now() + period;
    while (at.core->now() < until && !at.call->cancelled() && at.core->serving()) {
      co_await at.core->env.timers.sleep_for(at.core->options.timings.tick);
    }
  }
  co_return at.call->cancelled() ? grpc::client_gone() : not_ready();
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

net::awaitable<Status> list_methods(NodeCall at, std::shared_ptr<grpc::ServiceTable> table) {
  const auto request = co_await at.call->only<es::Empty>();
  if (!request) {
    co_return request.error();
  }
  es::server_features::SupportedMethods out;
  out.set_event_store_server_version("24.6.0");
  for (const auto& [service, method] : table->methods()) {
    if (!service.starts_with(kClientPackage)) {
      continue;  // between nodes
    }
    auto& entry = *out.add_methods();
    entry.set_service_name(lower(service));
    entry.set_method_name(lower(method));
    const bool streams = service.ends_with(".Streams");
    if (streams && method == "Read") {
      entry.add_features("position");
      entry.add_features("events");
    } else if (service.ends_with(".PersistentSubscriptions")) {
      entry.add_features("stream");
      entry.add_features("all");
    } else if (streams && method == "BatchAppend") {
      entry.add_features("deadline_duration");
    }
  }
  co_await at.call->write(out);
  co_return Status{};
}

/// Servers take these from each other alone. Embedded nodes speak to each other in another way, so
/// that of them a caller gets what a client gets of a server.
void refuse_between_nodes(const Registry& registry) {
  const auto refuse = [](NodeCall /*at*/) -> net::awaitable<Status> { co_return access_denied(); };
  for (const auto* method : {"Read", "Update"}) {
    registry.add_whole("event_store.cluster.Gossip", method, refuse);
  }
  for (const auto* method : {"ViewChange", "ViewChangeProof", "Prepare", "PrepareOk", "Proposal",
                             "Accept", "LeaderIsResigning", "LeaderIsResigningOk"}) {
    registry.add_whole("event_store.cluster.Elections", method, refuse);
  }
}

}  // namespace

void add_cluster_services(const Registry& registry) {
  refuse_between_nodes(registry);
  registry.add("gossip.Gossip", "Read", read_gossip);
  registry.add("monitoring.Monitoring", "Stats", stats);
  registry.add("server_features.ServerFeatures", "GetSupportedMethods",
               [weak = std::weak_ptr(registry.table)](NodeCall at) {
                 return list_methods(std::move(at), weak.lock());
               });
}

}  // namespace verger::node::rpc
