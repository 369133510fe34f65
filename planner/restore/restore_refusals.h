#pragma once

#include <vector>

#include "planner/restore/restore_order.h"

namespace verger::planner::detail {

/// Every reason at once why there is no plan; empty: nothing stands against it.
std::vector<Refusal> restore_refusals(const RestoreOrder& order);

}  // namespace verger::planner::detail
