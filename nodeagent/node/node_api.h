#pragma once

#include <memory>

#include "nodeagent/http/message.h"
#include "nodeagent/http/router.h"

/// The node interface over HTTP (docs/formats/node-interface.md), and the routes between nodes.
namespace verger::node {

class Core;

/// All routes of one node; the handlers hold `core` weakly.
std::shared_ptr<http::Router> make_router(const std::shared_ptr<Core>& core);

/// Adds a route whose handler gets the node, or answers 503 once it is gone.
using NodeHandler =
    std::function<net::awaitable<http::Response>(std::shared_ptr<Core>, http::RoutedRequest)>;
void add_route(http::Router& router, const std::shared_ptr<Core>& core, std::string method,
               std::string_view pattern, NodeHandler handler);

void add_scavenge_routes(http::Router& router, const std::shared_ptr<Core>& core);
void add_scavenge_history_routes(http::Router& router, const std::shared_ptr<Core>& core);
/// Behind EnableAtomPubOverHttp.
void add_stream_routes(http::Router& router, const std::shared_ptr<Core>& core);

}  // namespace verger::node
