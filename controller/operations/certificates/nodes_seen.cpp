#include "controller/operations/certificates/nodes_seen.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include <boost/asio/ip/address.hpp>

#include "controller/cluster/gather.h"
#include "nodeagent/certificates/certificate_details.h"

namespace verger::controller::certificate_change {
namespace {

/// As it and the others advertise it, and as it is registered.
std::vector<std::string> addresses_of(const api::Gossip& gossip, const std::string& url) {
  std::set<std::string> out;
  const auto add = [&out](const std::string& address) {
    if (!address.empty()) {
      out.insert(address);
    }
  };
  const auto registered = http::parse_endpoint(url);
  if (registered) {
    add(registered->host);
  }
  for (const auto& member : gossip.members) {
    const bool own = gossip.members.size() == 1 ||
                     (member.http_ip == gossip.server_ip && member.http_port == gossip.server_port);
    if (own) {
      add(member.http_ip);
      add(member.internal_tcp_ip);
      add(member.external_tcp_ip);
      add(member.internal_http_ip);
    }
  }
  return {out.begin(), out.end()};
}

net::awaitable<NodeSeen> look_at_node(std::shared_ptr<Peers> peers, ClusterNode node,
                                      std::optional<api::CertificateSource> candidate) {
  NodeSeen out{.name = node.name};
  if (peers->has_agent(node.name)) {
    if (auto live = co_await peers->certificates(node.name)) {
      out.live = *std::move(live);
    } else {
      out.live_problem = live.error().code == Errc::kNotFound
                             ? fmt::format(
                                   "its agent does not know its certificates: {}; it needs this "
                                   "version and the options that name them "
                                   "(docs/operations/agents.md)",
                                   live.error().message)
                             : live.error().message;
    }
  } else {
    out.live_problem = "it has no agent";
  }
  if (auto configured = co_await peers->settings(node.name)) {
    out.configured = *std::move(configured);
  }
  if (auto served = co_await peers->served_chain(node.name)) {
    out.served = *std::move(served);
  } else {
    out.served_problem = served.error().message;
  }
  if (candidate && out.live) {
    if (auto next = co_await peers->certificate_candidate(node.name, *std::move(candidate))) {
      out.next = *std::move(next);
    } else {
      out.next_problem = next.error().message;
    }
  }
  const auto gossip = co_await peers->gossip(node.name);
  out.addresses = addresses_of(gossip.value_or(api::Gossip()), node.url);
  co_return out;
}

}  // namespace

net::awaitable<std::vector<NodeSeen>> look_at_nodes(
    std::shared_ptr<Peers> peers, std::map<std::string, api::CertificateSource> candidates) {
  std::vector<net::awaitable<NodeSeen>> looks;
  for (const auto& node : peers->cluster().nodes) {
    const auto found = candidates.find(node.name);
    looks.push_back(look_at_node(
        peers, node, found == candidates.end() ? std::nullopt : std::optional(found->second)));
  }
  co_return co_await gather(std::move(looks));
}

net::awaitable<Result<std::string>> served_serial(std::shared_ptr<Peers> peers, std::string node) {
  VERGER_CO_TRY(const auto chain, co_await peers->served_chain(std::move(node)));
  VERGER_CO_TRY(const auto read, certificates::read_details(chain));
  co_return read.front().info.serial;
}

bool is_address(std::string_view host) {
  boost::system::error_code error;
  net::ip::make_address(host, error);
  return !error;
}

}  // namespace verger::controller::certificate_change
