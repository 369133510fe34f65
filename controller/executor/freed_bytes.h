#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "controller/executor/run_state.h"

/// What the work of a run freed, as the nodes report it: member "space_saved" of a done step.
namespace verger::controller {

/// In bytes, by the names of nodes. Without those whose work was interrupted: they report what was
/// freed after that.
std::map<std::string, std::int64_t> freed_by_node(const RunState& run);
/// On all of them; nullopt: none reported it, or one only what was freed after an interruption.
std::optional<std::int64_t> freed_bytes(const RunState& run);

}  // namespace verger::controller
