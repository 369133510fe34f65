#include "engine/online/detail/shadow_files.h"

#include <fmt/format.h>

namespace verger::online_scavenge::detail {

Result<void> ShadowFiles::check(const Path& path) const {
  const std::scoped_lock lock(mutex_);
  if (linked_.contains(path)) {
    return Error{
        Errc::kIo,
        fmt::format("{}: is a file of the running node, and must not be changed", path.string())};
  }
  return {};
}

Result<std::unique_ptr<File>> ShadowFiles::open(const Path& path, OpenMode mode) {
  if (mode != OpenMode::kRead) {
    VERGER_RETURN_IF_ERROR(check(path));
  }
  return below().open(path, mode);
}

Result<void> ShadowFiles::rename(const Path& from, const Path& to) {
  VERGER_RETURN_IF_ERROR(below().rename(from, to));
  const std::scoped_lock lock(mutex_);
  linked_.erase(to);
  if (linked_.erase(from) > 0) {
    linked_.insert(to);
  }
  return {};
}

Result<void> ShadowFiles::remove(const Path& path) {
  VERGER_RETURN_IF_ERROR(below().remove(path));
  const std::scoped_lock lock(mutex_);
  linked_.erase(path);
  return {};
}

Result<void> ShadowFiles::set_read_only(const Path& path, bool read_only) {
  VERGER_RETURN_IF_ERROR(check(path));
  return below().set_read_only(path, read_only);
}

}  // namespace verger::online_scavenge::detail
