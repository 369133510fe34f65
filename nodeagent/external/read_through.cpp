#include "nodeagent/external/read_through.h"

#include <fmt/format.h>

namespace verger::external {
namespace {

Error not_ours(const Path& path) {
  return {Errc::kRefused, fmt::format("{}: is only read", path.string())};
}

class ReadOnlyFile final : public File {
 public:
  explicit ReadOnlyFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  const Path& path() const override { return file_->path(); }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    return file_->read_at(offset, into);
  }
  Result<void> write_at(std::uint64_t /*offset*/, ByteView /*bytes*/) override {
    return not_ours(path());
  }
  Result<std::uint64_t> size() const override { return file_->size(); }
  Result<void> resize(std::uint64_t /*size*/) override { return not_ours(path()); }
  Result<void> sync() override { return {}; }

 private:
  std::unique_ptr<File> file_;
};

}  // namespace

ReadThrough::ReadThrough(FileSystem& base, Path file) : base_(base), file_(std::move(file)) {
  static_cast<void>(beside_.make_directories(file_.parent_path()));
}

Result<std::unique_ptr<File>> ReadThrough::open(const Path& path, OpenMode mode) {
  if (path != file_) {
    return beside_.open(path, mode);
  }
  VERGER_TRY(auto file, base_.open(path, OpenMode::kRead));
  return std::unique_ptr<File>(std::make_unique<ReadOnlyFile>(std::move(file)));
}

Result<bool> ReadThrough::exists(const Path& path) {
  return path == file_ ? base_.exists(path) : beside_.exists(path);
}

Result<std::uint64_t> ReadThrough::file_size(const Path& path) {
  return path == file_ ? base_.file_size(path) : beside_.file_size(path);
}

Result<std::vector<DirectoryEntry>> ReadThrough::list(const Path& directory) {
  return beside_.list(directory);
}

Result<void> ReadThrough::rename(const Path& from, const Path& to) {
  return from == file_ || to == file_ ? Result<void>(not_ours(file_)) : beside_.rename(from, to);
}

Result<void> ReadThrough::remove(const Path& path) {
  return path == file_ ? Result<void>(not_ours(file_)) : beside_.remove(path);
}

Result<void> ReadThrough::make_directories(const Path& path) {
  return beside_.make_directories(path);
}

Result<void> ReadThrough::sync_directory(const Path& directory) {
  return beside_.sync_directory(directory);
}

Result<void> ReadThrough::set_read_only(const Path& path, bool read_only) {
  return path == file_ ? Result<void>(not_ours(file_)) : beside_.set_read_only(path, read_only);
}

Result<DiskSpace> ReadThrough::space(const Path& path) { return base_.space(path); }

Result<std::unique_ptr<FileLock>> ReadThrough::lock(const Path& path) { return beside_.lock(path); }

}  // namespace verger::external
