#include "engine/base/file_system.h"

#include <fmt/format.h>

namespace verger {

Result<void> File::read_exact(std::uint64_t offset, MutableBytes into) const {
  VERGER_TRY(const std::size_t got, read_at(offset, into));
  if (got != into.size()) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: ends at offset {}, where {} bytes were expected from offset {}",
                             path().string(), offset + got, into.size(), offset)};
  }
  return {};
}

Result<void> write_file_durably(FileSystem& files, const Path& path, ByteView content) {
  Path temporary = path;
  temporary += ".tmp";
  const auto write_temporary = [&]() -> Result<void> {
    VERGER_TRY(const auto file, files.open(temporary, OpenMode::kCreate));
    VERGER_RETURN_IF_ERROR(file->resize(0));  // one may be left from a crash
    VERGER_RETURN_IF_ERROR(file->write_at(0, content));
    return file->sync();
  };
  auto written = write_temporary();
  if (written) {
    // A crash before this line leaves the old file and a .tmp; after it, the old or the new file.
    written = files.rename(temporary, path);
  }
  if (!written) {
    static_cast<void>(files.remove(temporary));  // the first error is the one that matters
    return written;
  }
  const Path parent = path.parent_path();
  return files.sync_directory(parent.empty() ? Path(".") : parent);
}

Result<Bytes> read_file(FileSystem& files, const Path& path, std::uint64_t limit) {
  VERGER_TRY(const auto file, files.open(path, OpenMode::kRead));
  VERGER_TRY(const std::uint64_t size, file->size());
  if (size > limit) {
    return Error{Errc::kUnsupported, fmt::format("{}: has {} bytes, at most {} are read at once",
                                                 path.string(), size, limit)};
  }
  Bytes content(size);
  VERGER_TRY(const std::size_t got, file->read_at(0, content));
  content.resize(got);
  return content;
}

std::string exposed_secret(FileSystem& files, const Path& path) {
  const auto exposed = files.readable_by_anybody(path);
  return exposed && *exposed
             ? fmt::format("{} has a secret that every user of its machine can read: chmod 600 {}",
                           path.string(), path.string())
             : std::string();
}

}  // namespace verger
