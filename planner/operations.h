#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/operation.h"

/// The table of operations, and what every operation has.
namespace verger::planner {

std::span<const Operation* const> operations();
/// nullptr: there is none of that name.
const Operation* find_operation(std::string_view name);
/// nullptr: it is of a newer controller.
const Operation* operation_of(const Policy& policy);
std::string_view operation_name(const Policy& policy);
/// "known operations are: A, B"
std::string known_operations();

/// Those that all operations share, and its own.
std::vector<const Field*> fields_of(const Operation& operation);

/// nullptr: neither every agent's nor an operation's; it may be anything.
const AgentKind* find_agent_kind(std::string_view name);

}  // namespace verger::planner
