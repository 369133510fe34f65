#include "nodeagent/daemon/detail/database_place.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/log/chunk.h"

namespace verger::agent {
namespace {

/// Of a database whose first start ended before its first chunk, or of a fresh file system.
bool may_precede_a_database(const DirectoryEntry& entry) {
  constexpr std::array<std::string_view, 3> kNames{"verger.lock", "index", "lost+found"};
  return std::ranges::find(kNames, entry.name) != kNames.end() ||
         entry.name.ends_with(".chk.tmp") || entry.name.ends_with(".chk");
}

}  // namespace

Result<void> check_database_place(FileSystem& files, const Path& directory, bool init) {
  if (init) {
    return {};
  }
  const auto entries = files.list(directory);
  if (!entries && entries.error().code != Errc::kNotFound) {
    return entries.error();
  }
  if (!entries) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("--db {0}: there is no such directory: is the path right? A new "
                             "database begins with --init once, or in an empty directory "
                             "(mkdir {0})",
                             directory.string())};
  }
  const bool has_chunks = std::ranges::any_of(*entries, [](const DirectoryEntry& entry) {
    return log::parse_chunk_file_name(entry.name).has_value();
  });
  if (has_chunks || std::ranges::all_of(*entries, may_precede_a_database)) {
    return {};
  }
  return Error{Errc::kInvalidArgument,
               fmt::format("--db {}: holds other files and no database: is the path right? A new "
                           "database begins in an empty directory, or beside these files with "
                           "--init once",
                           directory.string())};
}

}  // namespace verger::agent
