#pragma once

#include <vector>

#include "planner/backup/backup_order.h"

namespace verger::planner::detail {

/// Every reason why there can be no such run now, besides those that the preflight found; sorted.
/// Without facts (the preflight could not tell) only those that need none.
std::vector<Refusal> backup_refusals(const BackupOrder& order);

}  // namespace verger::planner::detail
