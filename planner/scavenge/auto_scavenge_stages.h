#pragma once

#include <optional>

#include "planner/scavenge/scavenge_order.h"

namespace verger::planner::detail {

/// The server's own auto-scavenge is paused before all else, and resumed after it; nullopt where
/// the policy leaves it alone, or it is not at work.
struct AutoScavengeStages {
  Stage pause;
  Stage resume;
};
std::optional<AutoScavengeStages> auto_scavenge_stages(const ScavengeOrder& order);

/// Scheduled, or at work now: it would start scavenges and resign leaders beside a run.
bool may_scavenge_by_itself(AutoScavenge state);

}  // namespace verger::planner::detail
