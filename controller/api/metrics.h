#pragma once

#include <boost/asio/awaitable.hpp>

#include "nodeagent/http/message.h"

namespace verger::controller {

namespace net = boost::asio;

struct ApiParts;

/// Prometheus' text format: the journal's state at this moment, and a look at each cluster for what
/// no journal knows (agents, certificates). docs/operations/metrics.md lists the metrics,
/// examples/prometheus the alert rules.
net::awaitable<http::Response> metrics_answer(const ApiParts& parts);

}  // namespace verger::controller
