#pragma once

#include <cstddef>
#include <string>

#include "tests/support/processes/real_cluster.h"

namespace verger::bench {

/// Which node leads: 0 is n1.
inline std::size_t leader_of(const test::RealCluster& cluster) {
  const auto shown = cluster.verger_json({"cluster", "show", "orders"});
  return static_cast<std::size_t>(shown.at("snapshot").at("leader").get<std::string>().at(1) - '1');
}

}  // namespace verger::bench
