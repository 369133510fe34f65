#pragma once

#include <string_view>

namespace verger::controller {

/// More ways to break the controller on purpose than its options name (mutations.h): global as
/// failpoints are, for places that see no options. "hours-ignored": deny windows close nothing;
/// "errored-is-done": work that ended in an error counts as done; "GATE-ignored": a gate of this
/// name closes nothing. An empty name restores it.
/// Without failpoints compiled in (releases) they have no effect.
void break_on_purpose(std::string_view name);
[[nodiscard]] bool is_broken(std::string_view name);
[[nodiscard]] bool is_gate_ignored(std::string_view gate);

}  // namespace verger::controller
