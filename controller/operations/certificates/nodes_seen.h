#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "controller/cluster/peers.h"
#include "nodeagent/api/agent_certificates.h"
#include "planner/snapshot.h"

/// What a change of certificates looks at: each node's agent, and a handshake of vergerd's own.
namespace verger::controller::certificate_change {

struct NodeSeen {
  std::string name{};
  std::optional<api::NodeCertificates> live{};
  std::string live_problem{};  ///< why its agent does not say; empty: it did
  /// The node's own options; nullopt: it does not show them.
  std::optional<client::NodeSettings> configured{};
  std::string served{};  ///< the chain that a new connection was shown, PEM
  std::string served_problem{};
  std::optional<api::CertificateFiles> next{};  ///< its new files, where they were asked for
  std::string next_problem{};
  std::vector<std::string> addresses{};  ///< under which others reach it, without ports; sorted
};

/// All registered nodes, side by side. `candidates`: by node, where its new files are.
net::awaitable<std::vector<NodeSeen>> look_at_nodes(
    std::shared_ptr<Peers> peers, std::map<std::string, api::CertificateSource> candidates);

/// Error: kUnavailable; kCorruption: what it shows is no certificate.
net::awaitable<Result<std::string>> served_serial(std::shared_ptr<Peers> peers, std::string node);

bool is_address(std::string_view host);

}  // namespace verger::controller::certificate_change
