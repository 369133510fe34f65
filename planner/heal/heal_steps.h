#pragma once

#include <string_view>

/// Names that plans of healing share with the code that carries them out. They are parts of plans,
/// hashes and journals.
namespace verger::planner::heal_steps {

/// On a node, whose agent stops its server, removes the checkpoint of its existence filter, starts
/// the server, and reads a sample of its streams. Undone by starting the server. Parameters:
/// `serviceDeadlineMs` (where it is not the usual).
inline constexpr std::string_view kHealFilter = "heal_filter";

}  // namespace verger::planner::heal_steps
