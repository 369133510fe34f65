#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "controller/cluster/peers.h"

namespace verger::controller::certificate_change {

/// What new handshakes showed, with every node and between all of them.
struct Proof {
  std::vector<std::string> problems{};    ///< what contradicts it, or was not seen; for people
  std::vector<std::string> not_proven{};  ///< what cannot be seen there; no contradiction
  int handshakes = 0;                     ///< that showed what they should
  [[nodiscard]] bool holds() const { return problems.empty(); }
};

/// vergerd opens a connection to each node, and each node's agent one to each other node, which
/// shows its certificate and is shown the agent's own. `serials`: what each node has to show; of
/// others only that they are accepted.
net::awaitable<Proof> prove_certificates(std::shared_ptr<Peers> peers,
                                         std::map<std::string, std::string> serials);

}  // namespace verger::controller::certificate_change
