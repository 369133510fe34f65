#include "nodeagent/external/file_access.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "engine/base/unique_fd.h"

namespace verger::external {
namespace {

Error access_error(const Path& path, std::string_view action, int number) {
  const auto code = number == ENOENT || number == ENOTDIR  ? Errc::kNotFound
                    : number == EEXIST                     ? Errc::kExists
                    : number == ENOSPC || number == EDQUOT ? Errc::kNoSpace
                    : number == EPERM || number == EACCES  ? Errc::kRefused
                                                           : Errc::kIo;
  return {code, fmt::format("{}: {}: {}", path.string(), action,
                            std::generic_category().message(number))};
}

class PosixFileAccess final : public FileAccess {
 public:
  Result<Path> target_of(const Path& path) override {
    std::error_code error;
    auto out = std::filesystem::canonical(path, error);
    if (error) {
      return access_error(path, "cannot be found", error.value());
    }
    return out;
  }

  Result<FileAttributes> attributes_of(const Path& path) override {
    struct stat seen{};
    if (::stat(path.c_str(), &seen) != 0) {
      return access_error(path, "cannot be looked at", errno);
    }
    return FileAttributes{
        .mode = seen.st_mode & 07777U, .owner = seen.st_uid, .group = seen.st_gid};
  }

  Result<void> set_attributes(const Path& path, const FileAttributes& to) override {
    VERGER_TRY(const auto now, attributes_of(path));
    // The owner first: a change of it clears bits of the mode.
    if ((now.owner != to.owner || now.group != to.group) &&
        ::lchown(path.c_str(), to.owner, to.group) != 0) {
      return access_error(path,
                          fmt::format("cannot be given to user {}, group {} (run the agent "
                                      "as that user, or as root)",
                                      to.owner, to.group),
                          errno);
    }
    if (::chmod(path.c_str(), to.mode) != 0) {
      return access_error(path, "its mode cannot be set", errno);
    }
    return {};
  }

  Result<void> create_private(FileSystem& /*files*/, const Path& path) override {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd.valid()) {
      return access_error(path, "cannot be made", errno);
    }
    return {};
  }

  std::string not_writable(const Path& directory) override {
    if (::access(directory.c_str(), W_OK | X_OK) == 0) {
      return {};
    }
    return fmt::format("{}: files cannot be replaced in it: {}", directory.string(),
                       std::generic_category().message(errno));
  }
};

}  // namespace

Result<void> FileAccess::create_private(FileSystem& files, const Path& path) {
  VERGER_TRY(const auto made, files.open(path, OpenMode::kCreateNew));
  return {};
}

FileAccess& posix_file_access() {
  static PosixFileAccess access;
  return access;
}

}  // namespace verger::external
