#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/index/index.h"
#include "engine/index/ptable.h"
#include "engine/verify/findings.h"

namespace verger::verify::detail {

/// The first ones of descending `entries`, as far as they are above `other`.
std::span<const index::IndexEntry> those_above(std::span<const index::IndexEntry> entries,
                                               const index::IndexEntry& other);

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
  /// Entries that follow that of `current`, which advance() gave last, in the same table: as many
  /// as are known, which may be none.
  [[nodiscard]] std::span<const index::IndexEntry> held(const Source& current) const;
  /// Moves to the last of `entries`, the first ones of held().
  static void skip(Source& current, std::span<const index::IndexEntry> entries);

 private:
  static void step(Source& source, Findings& findings);

  std::vector<Source> sources_;
  Source* current_ = nullptr;
};

}  // namespace verger::verify::detail
