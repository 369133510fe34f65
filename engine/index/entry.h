#pragma once

#include <compare>
#include <functional>

#include "engine/base/result.h"
#include "engine/base/types.h"

namespace verger::index {

/// One index entry. Order: hash (unsigned), number, position; PTables hold them descending.
struct IndexEntry {
  StreamHash hash;
  EventNumber number;
  LogPosition position;  ///< of the prepare, never of a commit
  friend auto operator<=>(const IndexEntry&, const IndexEntry&) = default;
};

/// Says whether an entry is one of the stream that is looked for, not of one with the same hash.
using EntryFilter = std::function<Result<bool>(const IndexEntry&)>;

}  // namespace verger::index
