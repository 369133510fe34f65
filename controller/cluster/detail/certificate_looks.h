#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "controller/cluster/observation_cache.h"
#include "controller/cluster/observer.h"

namespace verger::controller::detail {

/// Fills what `snapshot` says of certificates: of each node and agent with TLS the chain that a new
/// connection is shown, and of each agent what its node's files hold, unless `cache` has it of a
/// moment ago. With a `limit` it takes no longer than that. `config` and `snapshot` are the
/// awaiting caller's.
net::awaitable<void> look_at_certificates(Network network, std::shared_ptr<ObservationCache> cache,
                                          const ClusterConfig& config, Depth depth,
                                          std::optional<std::chrono::milliseconds> limit,
                                          planner::ClusterSnapshot& snapshot);

}  // namespace verger::controller::detail
