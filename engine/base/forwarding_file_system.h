#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/base/file_system.h"

namespace verger {

/// Passes every call on to the file system below it: for those that do a few things in another way.
class ForwardingFileSystem : public FileSystem {
 public:
  /// `below` outlives it.
  explicit ForwardingFileSystem(FileSystem& below) : below_(below) {}

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override {
    return below_.open(path, mode);
  }
  Result<bool> exists(const Path& path) override { return below_.exists(path); }
  Result<std::uint64_t> file_size(const Path& path) override { return below_.file_size(path); }
  Result<std::vector<DirectoryEntry>> list(const Path& directory) override {
    return below_.list(directory);
  }
  Result<void> rename(const Path& from, const Path& to) override { return below_.rename(from, to); }
  Result<void> remove(const Path& path) override { return below_.remove(path); }
  Result<void> make_directories(const Path& path) override { return below_.make_directories(path); }
  Result<void> sync_directory(const Path& directory) override {
    return below_.sync_directory(directory);
  }
  Result<void> set_read_only(const Path& path, bool read_only) override {
    return below_.set_read_only(path, read_only);
  }
  Result<std::string> file_identity(const Path& path) override {
    return below_.file_identity(path);
  }
  Result<bool> readable_by_anybody(const Path& path) override {
    return below_.readable_by_anybody(path);
  }
  Result<DiskSpace> space(const Path& path) override { return below_.space(path); }
  Result<std::unique_ptr<FileLock>> lock(const Path& path) override { return below_.lock(path); }

 protected:
  [[nodiscard]] FileSystem& below() const { return below_; }

 private:
  FileSystem& below_;
};

/// The same for a file of such a file system.
class ForwardingFile : public File {
 public:
  explicit ForwardingFile(std::unique_ptr<File> below) : below_(std::move(below)) {}

  const Path& path() const override { return below_->path(); }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    return below_->read_at(offset, into);
  }
  Result<void> write_at(std::uint64_t offset, ByteView bytes) override {
    return below_->write_at(offset, bytes);
  }
  Result<std::uint64_t> size() const override { return below_->size(); }
  Result<void> resize(std::uint64_t size) override { return below_->resize(size); }
  Result<void> sync() override { return below_->sync(); }

 protected:
  [[nodiscard]] File& below() const { return *below_; }

 private:
  std::unique_ptr<File> below_;
};

}  // namespace verger
