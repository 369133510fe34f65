#pragma once

#include <cstdint>

#include "tests/support/processes/real_cluster.h"

namespace verger::bench {

/// Port of the leader's node interface.
inline std::uint16_t leader_port(test::RealCluster& cluster) {
  const auto shown = cluster.verger_json({"cluster", "show", "orders"});
  const auto leader = shown.at("snapshot").at("leader").get<std::string>();
  return cluster.node_port(static_cast<std::size_t>(leader.at(1) - '1'));
}

}  // namespace verger::bench
