#pragma once

#include <memory>

#include "nodeagent/http/frames.h"
#include "nodeagent/node/detail/gossip_service.h"
#include "nodeagent/node/detail/leadership.h"

namespace verger::node {

/// The leader's side of one replication connection, to its end (docs/formats/replication.md).
net::awaitable<void> serve_follower(std::shared_ptr<Leadership> leadership,
                                    std::shared_ptr<GossipService> gossip,
                                    std::shared_ptr<http::FrameConnection> connection);

}  // namespace verger::node
