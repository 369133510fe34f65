#pragma once

#include <memory>
#include <vector>

#include "engine/index/index.h"
#include "engine/index/index_map.h"

namespace verger::index::detail {

/// The live PTables with the rest of the index map. A value: changing it makes a new one.
struct TableSet {
  LogPosition prepare_checkpoint = kNoPosition;
  LogPosition commit_checkpoint = kNoPosition;
  std::int32_t max_auto_merge_level = IndexMap{}.max_auto_merge_level;
  std::vector<TableSlot> slots;  ///< levels ascending, positions ascending inside each

  [[nodiscard]] IndexMap to_map() const;
  /// Newest first.
  [[nodiscard]] std::vector<std::shared_ptr<const PTable>> newest_first() const;
  /// The lowest level that the server would merge into the next one; -1 = none.
  [[nodiscard]] int level_to_merge() const;
  [[nodiscard]] std::vector<std::shared_ptr<const PTable>> tables_of(int level) const;
  /// Appends to a level.
  void append(int level, std::shared_ptr<const PTable> table);
  void remove_level(int level);
};

}  // namespace verger::index::detail
