#pragma once

#include <string>
#include <vector>

#include "planner/restore/restore_order.h"

namespace verger::planner::detail {

/// Of each node, where its log ends and where the backup does: what is lost, or comes again from
/// the leader.
std::vector<NodeForecast> restore_forecast(const RestoreOrder& order);
/// What an operator has to know before the plan is carried out; what is lost comes first.
std::vector<std::string> restore_notes(const RestoreOrder& order);

}  // namespace verger::planner::detail
