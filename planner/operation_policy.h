#pragma once

#include <string>
#include <variant>

#include "planner/json.h"
#include "planner/scavenge/scavenge_policy.h"

namespace verger::planner {

/// Of a newer controller: nothing can be planned with it, but what was journaled keeps its content
/// and its hash.
struct UnknownOperation {
  std::string name;
  Json content;
};

/// What an operation has for itself, one alternative each; the table of operations is
/// planner/operations.cpp. The first is what a policy is about that does not say.
using OperationPolicy = std::variant<ScavengePolicy, UnknownOperation>;

}  // namespace verger::planner
