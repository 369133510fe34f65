#include "engine/backup/detail/restore_files.h"

#include <sys/stat.h>

#include "engine/base/database_files.h"
#include "engine/base/directories.h"
#include "engine/log/chunk.h"

namespace verger::backup::detail {

bool is_checkpoint(std::string_view path) { return path.ends_with(".chk") && !path.contains('/'); }

bool is_chunk(std::string_view path) { return log::parse_chunk_file_name(path).has_value(); }

bool is_of_index(std::string_view path) { return path.starts_with(kIndexPrefix); }

Result<void> remove_tree(FileSystem& files, const Path& directory) {
  const auto entries = files.list(directory);
  if (!entries && entries.error().code == Errc::kNotFound) {
    return {};
  }
  if (!entries) {
    return entries.error();
  }
  for (const auto& entry : *entries) {
    VERGER_RETURN_IF_ERROR(entry.is_directory ? remove_tree(files, directory / entry.name)
                                              : files.remove(directory / entry.name));
  }
  return files.remove(directory);
}

Result<std::uint64_t> tree_bytes(FileSystem& files, const Path& directory) {
  const auto entries = files.list(directory);
  if (!entries && entries.error().code == Errc::kNotFound) {
    return std::uint64_t{0};
  }
  if (!entries) {
    return entries.error();
  }
  std::uint64_t bytes = 0;
  for (const auto& entry : *entries) {
    if (entry.is_directory) {
      VERGER_TRY(const auto below, tree_bytes(files, directory / entry.name));
      bytes += below;
    } else {
      bytes += entry.size;
    }
  }
  return bytes;
}

Result<bool> share_volume(FileSystem& files, const Path& one, const Path& other) {
  VERGER_TRY(const auto first, existing_part(files, one));
  VERGER_TRY(const auto second, existing_part(files, other));
  if (is_machine_disk(files)) {
    struct stat a{};
    struct stat b{};
    return ::stat(first.c_str(), &a) == 0 && ::stat(second.c_str(), &b) == 0 &&
           a.st_dev == b.st_dev;
  }
  VERGER_TRY(const auto of_first, files.space(first));
  VERGER_TRY(const auto of_second, files.space(second));
  return of_first.total == of_second.total && of_first.available == of_second.available;
}

}  // namespace verger::backup::detail
