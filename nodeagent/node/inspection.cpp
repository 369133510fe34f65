#include "nodeagent/node/inspection.h"

#include <algorithm>

#include "engine/index/index_map.h"

namespace verger::node {

IndexInventory inventory_of(const std::vector<IndexTable>& tables, int max_auto_merge_level) {
  IndexInventory out{.largest_table = 0, .largest_merge = 0};
  struct Level {
    int count = 0;
    std::int64_t bytes = 0;
    std::int64_t largest = 0;
  };
  std::vector<Level> levels;
  for (const auto& table : tables) {
    const auto number = static_cast<std::size_t>(std::max(table.level, 0));
    levels.resize(std::max(levels.size(), number + 1));
    auto& level = levels[number];
    ++level.count;
    level.bytes += table.bytes;
    level.largest = std::max(level.largest, table.bytes);
    out.largest_table = std::max(out.largest_table, table.bytes);
  }
  // What comes from the memtable is like the tables of the first level.
  auto incoming = levels.empty() ? std::int64_t{0} : levels.front().largest;
  for (std::size_t i = 0; i < levels.size() && static_cast<int>(i) < max_auto_merge_level; ++i) {
    if (levels[i].count + 1 < index::kTablesPerLevel) {
      break;
    }
    incoming += levels[i].bytes;
    out.largest_merge = std::max(out.largest_merge, incoming);
  }
  return out;
}

}  // namespace verger::node
