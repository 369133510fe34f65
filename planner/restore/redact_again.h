#pragma once

#include <cstdint>
#include <string>

#include "planner/plan.h"

namespace verger::planner::detail {

/// Between the restore of a node and its start, of a cluster of which so many runs have redacted
/// events.
Step redact_again_step(const std::string& node, std::string_view scope, std::int64_t runs);

}  // namespace verger::planner::detail
