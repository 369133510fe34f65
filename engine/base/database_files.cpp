#include "engine/base/database_files.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <grp.h>
#include <optional>
#include <pwd.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "engine/base/forwarding_file_system.h"

namespace verger {
namespace {

Path directory_of(const Path& path) {
  return path.has_parent_path() ? path.parent_path() : Path(".");
}

// NOLINTBEGIN(concurrency-mt-unsafe): for messages before the first change, of one thread
std::string user_name(std::uint32_t user) {
  const auto* known = ::getpwuid(user);
  return known == nullptr ? fmt::format("{}", user) : known->pw_name;
}

std::string group_name(std::uint32_t group) {
  const auto* known = ::getgrgid(group);
  return known == nullptr ? fmt::format("{}", group) : known->gr_name;
}
// NOLINTEND(concurrency-mt-unsafe)

/// What new entries of a directory get; nullopt where it is not there, or is shared by users.
struct Heritage {
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  std::uint32_t mode = 0;
};
std::optional<Heritage> heritage_of(const Path& directory) {
  struct stat found{};
  if (::stat(directory.c_str(), &found) != 0 || (found.st_mode & S_ISVTX) != 0) {
    return std::nullopt;
  }
  return Heritage{found.st_uid, found.st_gid, found.st_mode};
}

/// Gives `path`, which was just made, what it inherits: those of `mode`'s bits that `kept` has.
/// Errors: errno's.
std::error_code give(const Path& path, const Heritage& heritage, std::uint32_t kept) {
  struct stat made{};
  if (::lstat(path.c_str(), &made) != 0) {
    return {errno, std::generic_category()};
  }
  if ((made.st_uid != heritage.user || made.st_gid != heritage.group) &&
      ::lchown(path.c_str(), heritage.user, heritage.group) != 0) {
    return {errno, std::generic_category()};
  }
  // After chown(), which may take bits away.
  if (::chmod(path.c_str(), heritage.mode & kept) != 0) {
    return {errno, std::generic_category()};
  }
  return {};
}

constexpr std::uint32_t kFileBits = 0666;
constexpr std::uint32_t kDirectoryBits = 02777;

class DatabaseFileSystem final : public ForwardingFileSystem {
 public:
  DatabaseFileSystem() : ForwardingFileSystem(posix_file_system()) {}

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override {
    if (mode == OpenMode::kRead || mode == OpenMode::kReadWrite) {
      return below().open(path, mode);
    }
    if (mode == OpenMode::kCreate) {
      auto there = below().open(path, OpenMode::kReadWrite);
      if (there || there.error().code != Errc::kNotFound) {
        return there;
      }
    }
    VERGER_TRY(auto file, below().open(path, OpenMode::kCreateNew));
    const auto heritage = heritage_of(directory_of(path));
    if (!heritage) {
      return file;
    }
    if (const auto failed = give(path, *heritage, kFileBits)) {
      static_cast<void>(below().remove(path).has_value());  // it is empty
      return Error{Errc::kRefused,
                   fmt::format("{}: cannot be given to {}:{}, whose its directory is: {}; run as "
                               "that user, or as root",
                               path.string(), user_name(heritage->user),
                               group_name(heritage->group), failed.message())};
    }
    return file;
  }

  Result<void> make_directories(const Path& path) override {
    VERGER_TRY(const bool there, below().exists(path));
    const auto parent = directory_of(path);
    if (!there && parent != path) {
      VERGER_RETURN_IF_ERROR(make_directories(parent));
    }
    VERGER_RETURN_IF_ERROR(below().make_directories(path));
    if (const auto heritage = heritage_of(parent); !there && heritage) {
      // One that stays the caller's is his own, with all that is made in it.
      static_cast<void>(give(path, *heritage, kDirectoryBits));
    }
    return {};
  }

  Result<std::unique_ptr<FileLock>> lock(const Path& path) override {
    VERGER_RETURN_IF_ERROR(open(path, OpenMode::kCreate));
    return below().lock(path);
  }
};

}  // namespace

FileSystem& database_file_system() {
  static DatabaseFileSystem files;
  return files;
}

bool is_machine_disk(const FileSystem& files) {
  return &files == &posix_file_system() || &files == &database_file_system();
}

FileMaker this_process() {
  FileMaker maker{.user = ::geteuid(), .groups = {}};
  const int count = ::getgroups(0, nullptr);
  maker.groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  if (!maker.groups.empty() &&
      ::getgroups(count, maker.groups.data()) < 0) {  // they changed meanwhile
    maker.groups.clear();
  }
  maker.groups.push_back(::getegid());
  return maker;
}

Result<void> check_file_owner(std::span<const Path> directories, const FileMaker& maker) {
  if (maker.user == 0) {
    return {};  // may give files away
  }
  for (const auto& directory : directories) {
    const auto heritage = heritage_of(directory);
    if (!heritage) {
      continue;
    }
    const bool is_owner = heritage->user == maker.user;
    if (is_owner && std::ranges::find(maker.groups, heritage->group) != maker.groups.end()) {
      continue;
    }
    return Error{
        Errc::kRefused,
        fmt::format("{0}: belongs to {1}:{2}, and this process runs as {3}, {4}: the server could "
                    "not use files that it makes there; run as {1} with the group {2}, or as root",
                    directory.string(), user_name(heritage->user), group_name(heritage->group),
                    user_name(maker.user),
                    is_owner ? "not in that group" : "which is another user")};
  }
  return {};
}

}  // namespace verger
