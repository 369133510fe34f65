#pragma once

#include <vector>

#include "controller/journal/journal.h"

/// What a removal does to the list of ranges that are gone; no I/O.
namespace verger::controller::detail {

/// Sorted, without repetition, before `newest`. Error: kInvalidArgument.
Result<void> check_removal(const Removal& removal, Sequence newest);

struct ChangeOfRanges {
  std::vector<Sequence> gone;     ///< ends of ranges that are part of others now
  std::vector<RemovedRange> now;  ///< in their place, and new ones
};
/// `known`: all ranges, by sequence; none of the removal's events is in one.
ChangeOfRanges change_of_ranges(const std::vector<RemovedRange>& known, const Removal& removal);

}  // namespace verger::controller::detail
