#include "engine/base/private_file.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "engine/base/unique_fd.h"

namespace verger {
namespace {

Error failed(std::string_view action, const Path& path) {
  const int number = errno;
  const auto code = number == EEXIST                       ? Errc::kExists
                    : number == ENOENT                     ? Errc::kNotFound
                    : number == ENOSPC || number == EDQUOT ? Errc::kNoSpace
                                                           : Errc::kIo;
  return {code, fmt::format("{}: {}: {}", path.string(), action,
                            std::generic_category().message(number))};
}

Result<void> write_all(int fd, std::string_view content, const Path& path) {
  while (!content.empty()) {
    const auto put = ::write(fd, content.data(), content.size());
    if (put < 0 && errno != EINTR) {
      return failed("cannot write", path);
    }
    content.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
  }
  return {};
}

}  // namespace

Result<void> write_private_file(const Path& path, std::string_view content, IfThere if_there) {
  // A name of this process's own: two that begin at once do not write into one file.
  const Path draft = path.string() + fmt::format(".{}.tmp", ::getpid());
  ::unlink(draft.c_str());
  UniqueFd fd(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return failed("cannot be made", draft);
  }
  struct Remover {
    const Path& draft;
    ~Remover() { ::unlink(draft.c_str()); }
  } remover{draft};
  VERGER_RETURN_IF_ERROR(write_all(fd.get(), content, draft));
  if (::fsync(fd.get()) != 0) {
    return failed("cannot be made durable", draft);
  }
  if (::close(fd.release()) != 0) {
    return failed("cannot be closed", draft);
  }
  // link() never replaces; rename() always does.
  const int moved = if_there == IfThere::kRefuse ? ::link(draft.c_str(), path.c_str())
                                                 : ::rename(draft.c_str(), path.c_str());
  if (moved != 0) {
    return failed(if_there == IfThere::kRefuse ? "cannot be made" : "cannot be replaced", path);
  }
  const auto directory = path.has_parent_path() ? path.parent_path() : Path(".");
  return posix_file_system().sync_directory(directory);
}

Result<void> make_private(const Path& path) {
  if (::chmod(path.c_str(), 0600) != 0) {
    return failed("its mode cannot be set", path);
  }
  return {};
}

Result<void> check_private_file(const Path& path) {
  struct stat seen{};
  if (::stat(path.c_str(), &seen) != 0) {
    return failed("cannot be looked at", path);
  }
  if ((seen.st_mode & 077U) != 0) {
    return Error{Errc::kRefused,
                 fmt::format("{0}: others than its owner may read or write it (mode {1:04o}); it "
                             "holds a secret: chmod 600 {0}",
                             path.string(), seen.st_mode & 07777U)};
  }
  return {};
}

}  // namespace verger
