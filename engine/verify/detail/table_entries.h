#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/index/index.h"
#include "engine/index/ptable.h"
#include "engine/verify/findings.h"

namespace verger::verify::detail {

/// The entries of several tables as one descending sequence, with the place of each.
class TableEntries {
 public:
  struct Source {
    std::shared_ptr<const index::PTable> table;
    index::PTableScanner scanner;
    std::optional<index::IndexEntry> entry = {};
    std::uint64_t number = 0;  ///< of `entry` in the table
    bool first = true;
    std::optional<StreamHash> last_hash = {};
  };

  explicit TableEntries(const std::vector<index::TableSlot>& slots);
  /// Moves to the next entry; nullptr at the end. A table that cannot be read on is reported, and
  /// left.
  Source* advance(Findings& findings);

 private:
  static void step(Source& source, Findings& findings);

  std::vector<Source> sources_;
  Source* current_ = nullptr;
};

}  // namespace verger::verify::detail
