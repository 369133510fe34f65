#pragma once

#include <string>
#include <vector>

#include "engine/base/types.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {

struct CompareOptions {
  LogPosition point;
  std::int32_t point_chunk = 0;
  /// A chunk executed twice (after a stop at threshold -1) has a higher version.
  bool versions = true;
};

/// The rules of tests/fixtures/README.md, "How to compare logically"; what differs, in words.
std::vector<std::string> differences(const DatabaseSnapshot& ours, const DatabaseSnapshot& server,
                                     const std::vector<index::IndexEntry>& table_entries_before,
                                     const CompareOptions& options);

/// Rule 4 alone.
std::vector<std::string> state_differences(const StateRows& ours, const StateRows& server);

}  // namespace verger::test
