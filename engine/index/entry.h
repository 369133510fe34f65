#pragma once

#include <compare>

#include "engine/base/types.h"

namespace verger::index {

/// One index entry. Order: hash (unsigned), number, position; PTables hold them descending.
struct IndexEntry {
  StreamHash hash;
  EventNumber number;
  LogPosition position;  ///< of the prepare, never of a commit
  friend auto operator<=>(const IndexEntry&, const IndexEntry&) = default;
};

}  // namespace verger::index
