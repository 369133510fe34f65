#include "nodeagent/operations/certificates/private_copy.h"

#include "engine/base/digest.h"

namespace verger::agent {

Result<void> write_copy(FileSystem& files, external::FileAccess& access, const Path& path,
                        std::string_view content,
                        const std::optional<external::FileAttributes>& as) {
  VERGER_RETURN_IF_ERROR(remove_if_there(files, path));
  VERGER_RETURN_IF_ERROR(access.write_new(files, path, content, as));
  auto durable = files.sync_directory(path.parent_path());
  if (!durable) {
    static_cast<void>(files.remove(path));
  }
  return durable;
}

Result<void> remove_if_there(FileSystem& files, const Path& path) {
  if (auto removed = files.remove(path); !removed && removed.error().code != Errc::kNotFound) {
    return removed;
  }
  return {};
}

Result<std::string> hash_if_there(FileSystem& files, const Path& path) {
  const auto content = read_file(files, path);
  if (!content && content.error().code == Errc::kNotFound) {
    return std::string();
  }
  if (!content) {
    return content.error();
  }
  return to_hex(sha256(*content));
}

}  // namespace verger::agent
