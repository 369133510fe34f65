#pragma once

#include <vector>

#include <boost/asio/awaitable.hpp>

#include "controller/cluster/observer.h"
#include "planner/policy.h"

namespace verger::controller {

/// The values of an instant query's answer (GET /api/v1/query): a vector's or a scalar's. Errors:
/// kInvalidArgument (the URL; without TLS only loopback is allowed; the query, with Prometheus' own
/// words), kUnavailable, kTimeout, kCorruption (not an answer of Prometheus).
net::awaitable<Result<std::vector<double>>> instant_query(Network network, std::string url,
                                                          std::string query);

/// All of them, side by side, in order. An answer without values holds nothing: what is not
/// measured is not known to be good.
net::awaitable<std::vector<planner::QueryResult>> ask_queries(
    Network network, std::vector<planner::QueryBlocker> queries);

}  // namespace verger::controller
