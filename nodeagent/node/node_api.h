#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "nodeagent/http/message.h"
#include "nodeagent/http/router.h"
#include "nodeagent/node/authentication.h"
#include "nodeagent/node/negotiation.h"

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

/// What is looked at before a route's handler: the body's format (415), the answer's (406, 500),
/// then the caller (401), in this order as the server does; a wrong password came before it all.
struct RouteRule {
  Need need = Need::kOperator;
  std::vector<Format> formats{};  ///< of the answer, the first is the default; empty: none
  std::vector<Format> bodies{};   ///< empty: a body is ignored
};
void add_route(http::Router& router, const std::shared_ptr<Core>& core, std::string method,
               std::string_view pattern, RouteRule rule, NodeHandler handler);

/// The chosen format, or the refusal.
std::expected<Negotiated, http::Response> choose_format(const http::RoutedRequest& request,
                                                        std::span<const Format> supported);
/// JSON as the server writes it: indented by two spaces.
std::string indented(const nlohmann::ordered_json& value);
/// "https://host:port" by which the caller knows this node.
std::string base_url(const Core& core, const http::Request& request);
/// The caller; only for a request that reached a handler: a known user, or anonymous.
Identity identity_of(Core& core, const http::Request& request);

/// What is the leader's business: the request goes there as it came, its answer comes back.
/// nullopt: this node is the leader.
net::awaitable<std::optional<http::Response>> by_the_leader(std::shared_ptr<Core> core,
                                                            http::Request request);

/// What the admin routes and the service Operations do alike.
void resign_lead(Core& core);
void change_priority(Core& core, std::int32_t priority);
void shut_down(Core& core);
void merge_index(Core& core);
/// All statistics under one level of names: "es-queue-mainQueue-length".
nlohmann::ordered_json flat_stats(Core& core);

/// /stats, /stats/replication, /stats/tcp; like /metrics behind DisableStatsOnHttp.
void add_stats_routes(http::Router& router, const std::shared_ptr<Core>& core);
void add_metrics_route(http::Router& router, const std::shared_ptr<Core>& core);
/// /info/options.
void add_options_route(http::Router& router, const std::shared_ptr<Core>& core);
/// /users, and /admin/login. Not in insecure mode.
void add_user_routes(http::Router& router, const std::shared_ptr<Core>& core);
/// /subscriptions, and their restart.
void add_subscription_routes(http::Router& router, const std::shared_ptr<Core>& core);
void add_scavenge_routes(http::Router& router, const std::shared_ptr<Core>& core);
void add_scavenge_history_routes(http::Router& router, const std::shared_ptr<Core>& core);
/// Behind EnableAtomPubOverHttp.
void add_stream_routes(http::Router& router, const std::shared_ptr<Core>& core);

}  // namespace verger::node
