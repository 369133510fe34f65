#include "engine/index/detail/table_set.h"

#include <algorithm>

namespace verger::index::detail {

IndexMap TableSet::to_map() const {
  IndexMap map{prepare_checkpoint, commit_checkpoint, max_auto_merge_level, {}};
  for (const auto& slot : slots) {
    map.tables.push_back({slot.level, slot.position, slot.table->path().filename().string()});
  }
  return map;
}

std::vector<std::shared_ptr<const PTable>> TableSet::newest_first() const {
  auto sorted = slots;
  std::ranges::sort(sorted, {},
                    [](const TableSlot& slot) { return std::pair(slot.level, -slot.position); });
  std::vector<std::shared_ptr<const PTable>> tables;
  tables.reserve(sorted.size());
  for (auto& slot : sorted) {
    tables.push_back(std::move(slot.table));
  }
  return tables;
}

int TableSet::level_to_merge() const {
  const auto levels = slots.empty() ? 0 : slots.back().level + 1;
  for (int level = 0; level < std::min(levels, max_auto_merge_level); ++level) {
    const auto count = std::ranges::count(slots, level, &TableSlot::level);
    // Upgrading version 1 needs every stream's name from the log: rebuilding does that.
    const bool old = std::ranges::any_of(slots, [&](const TableSlot& slot) {
      return slot.level == level && slot.table->version() == 1;
    });
    if (count >= kTablesPerLevel && !old) {
      return level;
    }
  }
  return -1;
}

std::vector<std::shared_ptr<const PTable>> TableSet::tables_of(int level) const {
  std::vector<std::shared_ptr<const PTable>> tables;
  for (const auto& slot : slots) {
    if (slot.level == level) {
      tables.push_back(slot.table);
    }
  }
  return tables;
}

void TableSet::append(int level, std::shared_ptr<const PTable> table) {
  const auto position = static_cast<int>(std::ranges::count(slots, level, &TableSlot::level));
  const auto behind =
      std::ranges::find_if(slots, [level](const TableSlot& slot) { return slot.level > level; });
  slots.insert(behind, TableSlot{level, position, std::move(table)});
}

void TableSet::remove_level(int level) {
  std::erase_if(slots, [level](const TableSlot& slot) { return slot.level == level; });
}

}  // namespace verger::index::detail
