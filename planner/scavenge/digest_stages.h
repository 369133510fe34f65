#pragma once

#include <optional>

#include "planner/scavenge/scavenge_order.h"

namespace verger::planner::detail {

/// A node that is scavenged after the maker of the point records what could be read before;
/// nullopt where that is not wanted, or no node can do it.
std::optional<Stage> record_stage(const ScavengeOrder& order);
/// All nodes' digests up to the point, at the end; nullopt where there are fewer than two to
/// compare.
std::optional<Stage> comparison_stage(const ScavengeOrder& order);

}  // namespace verger::planner::detail
