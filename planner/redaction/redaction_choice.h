#pragma once

#include <string>

#include "planner/make_plan.h"
#include "planner/redaction/redaction_policy.h"
#include "planner/snapshot.h"

namespace verger::planner::detail {

/// How one node is redacted, and why so.
struct RedactionChoice {
  bool online = false;
  std::string reason{};
};

/// What speaks against redacting the node while it runs, with what to do; an empty message: nothing
/// does. The code is "online-not-possible" or "online-needs-licence".
Refusal against_online(const NodeSnapshot& node, const RedactionPolicy& wanted);

/// By strategy, agent, version and consent. kOnline chooses online also where something speaks
/// against it: that is to be refused.
RedactionChoice choose_redaction(const NodeSnapshot& node, const RedactionPolicy& wanted);

}  // namespace verger::planner::detail
