#pragma once

#include "engine/tool/detail/expected_entries.h"
#include "engine/tool/detail/findings.h"

namespace verger::tool {

struct IndexTotals {
  std::uint64_t tables = 0;
  std::uint64_t entries = 0;
  std::uint64_t events = 0;
  std::uint64_t without_record = 0;  ///< entries of records that were scavenged away
  std::uint64_t without_entry = 0;   ///< records that a scavenge let go from the index only
};

/// Compares index and log both ways, in one pass over the sorted entries of each; looks at tables,
/// filters and the epoch chain. Error: the log or the index cannot be read on.
Result<IndexTotals> verify_index(ToolContext& tool, const streams::Database& database,
                                 const VerifyOptions& options, Findings& findings);

}  // namespace verger::tool
