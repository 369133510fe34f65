#include "engine/base/detail/sqlite_snapshot.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/sqlite_copy.h"

namespace verger::sqlite {
namespace {

constexpr int kAttempts = 10;

Path beside(const Path& path, std::string_view suffix) {
  return path.native() + std::string(suffix);
}

/// The first bytes of a file; none when it is missing.
Result<Bytes> head_of(FileSystem& files, const Path& path, std::size_t length) {
  auto file = files.open(path, OpenMode::kRead);
  if (!file) {
    return file.error().code == Errc::kNotFound ? Result<Bytes>(Bytes()) : file.error();
  }
  Bytes head(length);
  VERGER_TRY(const std::size_t got, (*file)->read_at(0, head));
  head.resize(got);
  return head;
}

/// Shows whether the copied files belong together.
struct Stamp {
  Bytes wal;      ///< the header, with the salts that change when the log starts anew
  Bytes journal;  ///< the header of a rollback journal
  Bytes counter;  ///< the change counter of the database; not of use beside a write-ahead log
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

Result<Stamp> stamp_of(FileSystem& files, const Path& path) {
  Stamp stamp;
  VERGER_TRY(stamp.wal, head_of(files, beside(path, "-wal"), 32));
  VERGER_TRY(stamp.journal, head_of(files, beside(path, "-journal"), 28));
  if (stamp.wal.empty()) {
    VERGER_TRY(stamp.counter, head_of(files, path, 28));
  }
  return stamp;
}

Result<void> copy_file(FileSystem& from, const Path& source_path, FileSystem& to,
                       const Path& target_path) {
  VERGER_TRY(const auto source, from.open(source_path, OpenMode::kRead));
  VERGER_TRY(const auto target, to.open(target_path, OpenMode::kCreate));
  VERGER_RETURN_IF_ERROR(target->resize(0));
  Bytes buffer(std::size_t{1} << 20U);
  for (std::uint64_t offset = 0;;) {
    VERGER_TRY(const std::size_t got, source->read_at(offset, buffer));
    if (got == 0) {
      return {};
    }
    VERGER_RETURN_IF_ERROR(target->write_at(offset, ByteView(buffer).first(got)));
    offset += got;
  }
}

/// What an earlier attempt copied does not stay where the source has nothing.
Result<void> copy_if_there(FileSystem& from, const Path& source, FileSystem& to,
                           const Path& target) {
  auto copied = copy_file(from, source, to, target);
  if (!copied && copied.error().code == Errc::kNotFound) {
    const auto removed = to.remove(target);
    return removed || removed.error().code == Errc::kNotFound ? Result<void>() : removed;
  }
  return copied;
}

}  // namespace

Result<void> copy_database(FileSystem& from, const Path& source, FileSystem& to,
                           const Path& target) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    VERGER_TRY(const auto before, stamp_of(from, source));
    // The database first: a page that a checkpoint changes meanwhile is in the write-ahead log
    // copied afterwards, as long as that log did not start anew.
    VERGER_RETURN_IF_ERROR(copy_file(from, source, to, target));
    for (const auto* suffix : {"-wal", "-journal"}) {
      VERGER_RETURN_IF_ERROR(
          copy_if_there(from, beside(source, suffix), to, beside(target, suffix)));
    }
    VERGER_TRY(const auto after, stamp_of(from, source));
    if (before == after) {
      return {};
    }
  }
  return Error{
      Errc::kUnavailable,
      fmt::format("{}: is being written too fast for a copy; try again later", source.string())};
}

namespace detail {

Result<std::unique_ptr<MemoryFileSystem>> copy_database(FileSystem& files, const Path& path) {
  auto copy = std::make_unique<MemoryFileSystem>();
  VERGER_RETURN_IF_ERROR(copy->make_directories(path.parent_path()));
  VERGER_RETURN_IF_ERROR(sqlite::copy_database(files, path, *copy, path));
  return copy;
}

}  // namespace detail

}  // namespace verger::sqlite
