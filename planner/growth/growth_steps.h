#pragma once

#include <string_view>

/// Names that plans of a growth share with the code that carries them out. They are parts of plans,
/// hashes and journals. The kinds that restore the files are planner/restore/restore_steps.h.
namespace verger::planner::growth_steps {

/// On the new node: its server is started, with the files of the backup. Undone by stopping it;
/// that of a voter is done once the others have all that is committed.
/// Parameters: `replaces`, `role`.
inline constexpr std::string_view kStart = "join_start";
/// On the new node: seen in its role, it is registered, and `replaces` is no longer. Leaves
/// committed_value() of a restore first: from then on nothing is undone; then kMembersValue of the
/// executor. Parameters: `agent`, `replaces`, `role`, `url`.
inline constexpr std::string_view kRegister = "join_register";

}  // namespace verger::planner::growth_steps
