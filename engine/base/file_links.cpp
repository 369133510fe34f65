#include "engine/base/file_links.h"

#include <cerrno>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>

#include "engine/base/database_files.h"

namespace verger {
namespace {

Errc code_of_link(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return Errc::kNotFound;
    case EEXIST:
      return Errc::kExists;
    case ENOSPC:
    case EDQUOT:
      return Errc::kNoSpace;
    case EXDEV:
    case EPERM:
    case ENOTSUP:
      return Errc::kUnsupported;
    default:
      return Errc::kIo;
  }
}

}  // namespace

Result<void> link_file(FileSystem& files, const Path& from, const Path& to) {
  if (auto* links = dynamic_cast<FileLinks*>(&files)) {
    return links->link(from, to);
  }
  if (!is_machine_disk(files)) {
    return Error{Errc::kUnsupported,
                 fmt::format("{}: this file system has no links", from.string())};
  }
  if (::link(from.c_str(), to.c_str()) != 0) {
    const auto number = errno;
    return Error{code_of_link(number),
                 fmt::format("{}: cannot link as {}: {}", from.string(), to.string(),
                             std::generic_category().message(number))};
  }
  return {};
}

}  // namespace verger
