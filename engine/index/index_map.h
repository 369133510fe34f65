#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/random.h"
#include "engine/base/result.h"
#include "engine/base/types.h"

namespace verger::index {

/// A level with so many tables is merged into one of the next level.
inline constexpr std::ptrdiff_t kTablesPerLevel = 2;

/// The text file that lists the PTables: which are live, in which slot, and how far they go.
/// Format: docs/formats/index.md, "Index map".
struct IndexMap {
  struct Line {
    int level = 0;
    int position = 0;
    std::string file;
    friend bool operator==(const Line&, const Line&) = default;
  };
  LogPosition prepare_checkpoint = kNoPosition;
  LogPosition commit_checkpoint = kNoPosition;
  std::int32_t max_auto_merge_level = std::numeric_limits<std::int32_t>::max();
  /// Levels ascending, positions ascending from 0 inside each.
  std::vector<Line> tables;
  friend bool operator==(const IndexMap&, const IndexMap&) = default;
};

inline constexpr std::string_view kIndexMapName = "indexmap";

/// Errors: kCorruption (hash, form, gaps, a table although a checkpoint is negative).
Result<IndexMap> parse_index_map(std::string_view text);
/// With its hash, newlines are LF.
std::string format_index_map(const IndexMap& map);

/// A missing file is the empty map. Errors: kCorruption, kIo; the message names the file.
Result<IndexMap> load_index_map(FileSystem& files, const Path& directory);
/// Replaces the map atomically; it is durable when this returns.
Result<void> save_index_map(FileSystem& files, const Path& directory, const IndexMap& map,
                            Random& random);

}  // namespace verger::index
