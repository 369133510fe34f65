#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>

#include "engine/base/file_system.h"
#include "engine/base/unique_fd.h"
#include "engine/base/writeback.h"

namespace verger {
namespace {

Error errno_error(int number, std::string_view action, const Path& path) {
  Errc code = Errc::kIo;
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      code = Errc::kNotFound;
      break;
    case EEXIST:
      code = Errc::kExists;
      break;
    case ENOSPC:
    case EDQUOT:
      code = Errc::kNoSpace;
      break;
    default:
      break;
  }
  return {code, fmt::format("{}: {}: {}", path.string(), action,
                            std::generic_category().message(number))};
}

/// Calls until the call was not interrupted by a signal.
template <class Call>
auto retried(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) {
    result = call();
  }
  return result;
}

class PosixFile final : public File, public EarlyWriteback {
 public:
  PosixFile(UniqueFd fd, Path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  const Path& path() const override { return path_; }

  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    std::size_t done = 0;
    while (done < into.size()) {
      const auto got = retried([&] {
        return ::pread(fd_.get(), into.data() + done, into.size() - done,
                       static_cast<off_t>(offset + done));
      });
      if (got < 0) {
        return errno_error(errno, fmt::format("cannot read at offset {}", offset + done), path_);
      }
      if (got == 0) {
        break;
      }
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  Result<void> write_at(std::uint64_t offset, ByteView bytes) override {
    VERGER_RETURN_IF_ERROR(check_usable());
    std::size_t done = 0;
    while (done < bytes.size()) {
      const auto put = retried([&] {
        return ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done,
                        static_cast<off_t>(offset + done));
      });
      if (put <= 0) {
        return errno_error(put < 0 ? errno : EIO,
                           fmt::format("cannot write at offset {}", offset + done), path_);
      }
      done += static_cast<std::size_t>(put);
    }
    return {};
  }

  void start_writeback(std::uint64_t offset, std::uint64_t size) override {
    // A failure is the next sync's to report.
    ::sync_file_range(fd_.get(), static_cast<off64_t>(offset), static_cast<off64_t>(size),
                      SYNC_FILE_RANGE_WRITE);
  }

  Result<std::uint64_t> size() const override {
    struct stat status{};
    if (::fstat(fd_.get(), &status) != 0) {
      return errno_error(errno, "cannot tell its size", path_);
    }
    return static_cast<std::uint64_t>(status.st_size);
  }

  Result<void> resize(std::uint64_t size) override {
    VERGER_RETURN_IF_ERROR(check_usable());
    if (retried([&] { return ::ftruncate(fd_.get(), static_cast<off_t>(size)); }) != 0) {
      return errno_error(errno, fmt::format("cannot resize to {} bytes", size), path_);
    }
    return {};
  }

  Result<void> sync() override {
    VERGER_RETURN_IF_ERROR(check_usable());
    // The size belongs to what fdatasync makes durable; times do not matter.
    if (retried([&] { return ::fdatasync(fd_.get()); }) != 0) {
      const int number = errno;
      // The kernel may have dropped the dirty pages: a second call that returns 0 proves nothing.
      sync_failed_.store(true);
      return errno_error(number, "cannot sync", path_);
    }
    return {};
  }

 private:
  Result<void> check_usable() const {
    if (sync_failed_.load()) {
      return Error{Errc::kIo,
                   fmt::format("{}: closed for writing: an earlier sync failed", path_.string())};
    }
    return {};
  }

  UniqueFd fd_;
  Path path_;
  std::atomic<bool> sync_failed_{false};
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(UniqueFd fd) : fd_(std::move(fd)) {}

 private:
  UniqueFd fd_;  // closing it releases the lock
};

int open_flags(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead:
      return O_RDONLY;
    case OpenMode::kReadWrite:
      return O_RDWR;
    case OpenMode::kCreate:
      return O_RDWR | O_CREAT;
    case OpenMode::kCreateNew:
      return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

UniqueFd open_fd(const Path& path, int flags) {
  return UniqueFd(retried([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0644); }));
}

class PosixFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override {
    UniqueFd fd = open_fd(path, open_flags(mode));
    if (!fd.valid()) {
      return errno_error(errno, "cannot open", path);
    }
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) {
      return errno_error(errno, "cannot open", path);
    }
    if (S_ISDIR(status.st_mode)) {  // opening for reading does not say so
      return errno_error(EISDIR, "cannot open", path);
    }
    return std::make_unique<PosixFile>(std::move(fd), path);
  }

  Result<bool> exists(const Path& path) override {
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0) {
      return true;
    }
    if (errno == ENOENT || errno == ENOTDIR) {
      return false;
    }
    return errno_error(errno, "cannot look it up", path);
  }

  Result<std::uint64_t> file_size(const Path& path) override {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
      return errno_error(errno, "cannot tell its size", path);
    }
    return static_cast<std::uint64_t>(status.st_size);
  }

  Result<std::vector<DirectoryEntry>> list(const Path& directory) override {
    struct Close {
      void operator()(DIR* dir) const { ::closedir(dir); }
    };
    const std::unique_ptr<DIR, Close> dir(::opendir(directory.c_str()));
    if (!dir) {
      return errno_error(errno, "cannot list", directory);
    }
    std::vector<DirectoryEntry> entries;
    for (;;) {
      errno = 0;
      // Safe: no other thread has this stream.
      const dirent* found = ::readdir(dir.get());  // NOLINT(concurrency-mt-unsafe)
      if (found == nullptr) {
        if (errno != 0) {
          return errno_error(errno, "cannot list", directory);
        }
        break;
      }
      const std::string_view name = found->d_name;
      if (name == "." || name == "..") {
        continue;
      }
      struct stat status{};
      if (::fstatat(::dirfd(dir.get()), found->d_name, &status, 0) != 0) {
        if (errno == ENOENT) {
          continue;  // removed meanwhile, or a link that leads nowhere
        }
        return errno_error(errno, "cannot look it up", directory / name);
      }
      if (S_ISSOCK(status.st_mode)) {
        continue;  // a server's: it holds no bytes, and cannot be opened
      }
      const bool is_directory = S_ISDIR(status.st_mode);
      entries.push_back({std::string(name), is_directory,
                         is_directory ? 0 : static_cast<std::uint64_t>(status.st_size)});
    }
    std::ranges::sort(entries, {}, &DirectoryEntry::name);
    return entries;
  }

  Result<void> rename(const Path& from, const Path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      return errno_error(errno, fmt::format("cannot rename to {}", to.string()), from);
    }
    return {};
  }

  Result<void> remove(const Path& path) override {
    if (std::remove(path.c_str()) != 0) {  // a file, or an empty directory
      return errno_error(errno, "cannot remove", path);
    }
    return {};
  }

  Result<void> make_directories(const Path& path) override {
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0) {
      if (!S_ISDIR(status.st_mode)) {
        return errno_error(EEXIST, "cannot make the directory", path);
      }
      return {};
    }
    const Path parent = path.parent_path();
    if (!parent.empty() && parent != path) {
      VERGER_RETURN_IF_ERROR(make_directories(parent));
    }
    // Another process may have created it since.
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
      return errno_error(errno, "cannot make the directory", path);
    }
    return {};
  }

  Result<void> sync_directory(const Path& directory) override {
    const UniqueFd fd = open_fd(directory, O_RDONLY | O_DIRECTORY);
    if (!fd.valid()) {
      return errno_error(errno, "cannot open the directory", directory);
    }
    if (retried([&] { return ::fsync(fd.get()); }) != 0) {
      return errno_error(errno, "cannot sync the directory", directory);
    }
    return {};
  }

  Result<std::string> file_identity(const Path& path) override {
    struct statx status{};
    if (::statx(AT_FDCWD, path.c_str(), 0, STATX_INO | STATX_BTIME, &status) != 0) {
      return errno_error(errno, "cannot look it up", path);
    }
    // The number of a removed file is soon that of another one, which is younger.
    if ((status.stx_mask & STATX_BTIME) == 0) {
      return std::string();
    }
    return fmt::format("{}-{}.{:09}", status.stx_ino, status.stx_btime.tv_sec,
                       status.stx_btime.tv_nsec);
  }

  Result<bool> readable_by_anybody(const Path& path) override {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
      return errno_error(errno, "cannot look it up", path);
    }
    return (status.st_mode & S_IROTH) != 0;
  }

  Result<void> set_read_only(const Path& path, bool read_only) override {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
      return errno_error(errno, "cannot read its permissions", path);
    }
    const mode_t old = status.st_mode & 07777U;
    // Like the server: all write bits go, only the owner's comes back.
    const mode_t mode = read_only ? old & ~mode_t{0222} : old | mode_t{0200};
    if (mode != old && ::chmod(path.c_str(), mode) != 0) {
      return errno_error(errno, "cannot change its permissions", path);
    }
    return {};
  }

  Result<DiskSpace> space(const Path& path) override {
    struct statvfs status{};
    if (retried([&] { return ::statvfs(path.c_str(), &status); }) != 0) {
      return errno_error(errno, "cannot tell the disk space", path);
    }
    return DiskSpace{status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize};
  }

  Result<std::unique_ptr<FileLock>> lock(const Path& path) override {
    UniqueFd fd = open_fd(path, O_RDWR | O_CREAT);
    if (!fd.valid()) {
      return errno_error(errno, "cannot open the lock file", path);
    }
    struct flock wanted{};
    wanted.l_type = F_WRLCK;
    wanted.l_whence = SEEK_SET;  // from 0 to the end of the file
    if (retried([&] { return ::fcntl(fd.get(), F_OFD_SETLK, &wanted); }) != 0) {
      if (errno == EAGAIN || errno == EACCES) {
        return Error{
            Errc::kRefused,
            fmt::format("{}: another program holds this lock; stop it first", path.string())};
      }
      return errno_error(errno, "cannot lock", path);
    }
    return std::make_unique<PosixLock>(std::move(fd));
  }
};

}  // namespace

void start_writeback(File& file, std::uint64_t offset, std::uint64_t size) {
  if (auto* early = dynamic_cast<EarlyWriteback*>(&file)) {
    early->start_writeback(offset, size);
  }
}

FileSystem& posix_file_system() {
  static PosixFileSystem files;
  return files;
}

}  // namespace verger
