#include "engine/base/detail/sqlite_snapshot.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::sqlite::detail {
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

/// Tells whether what was copied belongs together.
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

Result<void> copy_file(FileSystem& from, MemoryFileSystem& to, const Path& path) {
  VERGER_TRY(const auto source, from.open(path, OpenMode::kRead));
  VERGER_TRY(const auto target, to.open(path, OpenMode::kCreate));
  VERGER_CHECK(target->resize(0));
  Bytes buffer(std::size_t{1} << 20U);
  for (std::uint64_t offset = 0;;) {
    VERGER_TRY(const std::size_t got, source->read_at(offset, buffer));
    if (got == 0) {
      break;
    }
    VERGER_CHECK(target->write_at(offset, ByteView(buffer).first(got)));
    offset += got;
  }
  return target->sync();
}

Result<void> copy_if_there(FileSystem& from, MemoryFileSystem& to, const Path& path) {
  auto copied = copy_file(from, to, path);
  if (!copied && copied.error().code == Errc::kNotFound) {
    return {};
  }
  return copied;
}

}  // namespace

Result<std::unique_ptr<MemoryFileSystem>> copy_database(FileSystem& files, const Path& path) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto copy = std::make_unique<MemoryFileSystem>();
    VERGER_CHECK(copy->make_directories(path.parent_path()));
    VERGER_TRY(const auto before, stamp_of(files, path));
    // The database first: a page that a checkpoint changes meanwhile is in the write-ahead log
    // copied afterwards, as long as that log did not start anew.
    VERGER_CHECK(copy_file(files, *copy, path));
    VERGER_CHECK(copy_if_there(files, *copy, beside(path, "-wal")));
    VERGER_CHECK(copy_if_there(files, *copy, beside(path, "-journal")));
    VERGER_TRY(const auto after, stamp_of(files, path));
    if (before == after) {
      return copy;
    }
  }
  return Error{
      Errc::kUnavailable,
      fmt::format("{}: is being written too fast for a copy; try again later", path.string())};
}

}  // namespace verger::sqlite::detail
