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

Result<void> write_into(UniqueFd& fd, const Path& path, std::string_view content,
                        const std::optional<FileAttributes>& attributes) {
  while (!content.empty()) {
    const auto put = ::write(fd.get(), content.data(), content.size());
    if (put < 0 && errno != EINTR) {
      return access_error(path, "cannot be written", errno);
    }
    content.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
  }
  struct stat made{};
  if (attributes && ::fstat(fd.get(), &made) != 0) {
    return access_error(path, "cannot be looked at", errno);
  }
  // The owner first: a change of it clears bits of the mode.
  if (attributes && (made.st_uid != attributes->owner || made.st_gid != attributes->group) &&
      ::fchown(fd.get(), attributes->owner, attributes->group) != 0) {
    return access_error(path,
                        fmt::format("cannot be given to user {}, group {} (run the agent as that "
                                    "user, or as root)",
                                    attributes->owner, attributes->group),
                        errno);
  }
  if (attributes && ::fchmod(fd.get(), attributes->mode) != 0) {
    return access_error(path, "its mode cannot be set", errno);
  }
  if (::fsync(fd.get()) != 0) {
    return access_error(path, "cannot be made durable", errno);
  }
  if (::close(fd.release()) != 0) {
    return access_error(path, "cannot be closed", errno);
  }
  return {};
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

  Result<void> write_new(FileSystem& /*files*/, const Path& path, std::string_view content,
                         const std::optional<FileAttributes>& attributes) override {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid()) {
      return access_error(path, "cannot be made", errno);
    }
    auto written = write_into(fd, path, content, attributes);
    if (!written) {
      ::unlink(path.c_str());
    }
    return written;
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

Result<void> FileAccess::write_new(FileSystem& files, const Path& path, std::string_view content,
                                   const std::optional<FileAttributes>& /*attributes*/) {
  VERGER_TRY(const auto file, files.open(path, OpenMode::kCreateNew));
  auto written = file->write_at(0, as_bytes(content));
  if (written) {
    written = file->sync();
  }
  if (!written) {
    static_cast<void>(files.remove(path));
  }
  return written;
}

FileAccess& posix_file_access() {
  static PosixFileAccess access;
  return access;
}

}  // namespace verger::external
