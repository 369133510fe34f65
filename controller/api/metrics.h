#pragma once

#include "nodeagent/http/message.h"

namespace verger::controller {

struct ApiParts;

/// Prometheus' text format: the journal's state at this moment, and for what no journal knows
/// (nodes, agents, certificates) each cluster as it was last observed. docs/operations/metrics.md
/// lists the metrics, examples/prometheus the alert rules.
http::Response metrics_answer(const ApiParts& parts);

}  // namespace verger::controller
