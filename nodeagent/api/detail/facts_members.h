#pragma once

#include "nodeagent/api/agent.h"
#include "nodeagent/api/json_view.h"
#include "nodeagent/api/json_writer.h"

namespace verger::api {

/// What parse_node_facts() reads, of a document that more is read from.
Result<NodeFacts> node_facts_of(JsonView value);
/// What to_text() writes, into an object that gets more.
void write_members(JsonWriter& out, const NodeFacts& facts);

}  // namespace verger::api
