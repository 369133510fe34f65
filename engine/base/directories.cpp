#include "engine/base/directories.h"

namespace verger {

Result<void> make_directories_durably(FileSystem& files, const Path& directory) {
  // The parents of what is not there yet, which is not durable even if a killed process made it:
  // the nearest that is there may lack its own name, so its parent is synced as well.
  std::vector<Path> parents;
  for (Path at = directory;; at = parents.back()) {
    VERGER_TRY(const bool exists, files.exists(at));
    const Path parent = at.has_parent_path() ? at.parent_path() : Path(".");
    if (parent == at) {
      break;
    }
    parents.push_back(parent);
    if (exists) {
      break;
    }
  }
  VERGER_RETURN_IF_ERROR(files.make_directories(directory));
  for (const Path& parent : parents) {
    VERGER_RETURN_IF_ERROR(files.sync_directory(parent));
  }
  return {};
}

Result<Path> existing_part(FileSystem& files, const Path& directory) {
  for (Path at = directory;; at = at.parent_path()) {
    VERGER_TRY(const bool there, files.exists(at));
    if (there || !at.has_parent_path() || at == at.parent_path()) {
      return at;
    }
  }
}

}  // namespace verger
