#pragma once

#include "nodeagent/api/agent.h"
#include "nodeagent/api/detail/json_view.h"

namespace verger::api {

/// What parse_node_facts() reads, of a document that more is read from.
Result<NodeFacts> node_facts_of(JsonView value);

}  // namespace verger::api
