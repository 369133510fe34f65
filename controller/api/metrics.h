#pragma once

#include "nodeagent/http/message.h"

namespace verger::controller {

struct ApiParts;

/// Prometheus' text format; what it says comes from the journal's state at this moment.
/// docs/operations/metrics.md lists the metrics, examples/prometheus the alert rules.
http::Response metrics_answer(const ApiParts& parts);

}  // namespace verger::controller
