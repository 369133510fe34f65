#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "engine/base/file_links.h"
#include "engine/base/file_system.h"

namespace verger::test {

/// A disk that is full from one moment to the next: what is there can be read, renamed and removed,
/// but nothing is written, made or linked. Safe from any thread.
class FillingDisk final : public FileSystem, public FileLinks {
 public:
  /// `disk` outlives it, and it outlives its files.
  explicit FillingDisk(FileSystem& disk) : disk_(disk) {}

  std::atomic<bool> full = false;

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override {
    if (mode == OpenMode::kCreate || mode == OpenMode::kCreateNew) {
      VERGER_TRY(const bool there, disk_.exists(path));
      if (!there) {
        VERGER_RETURN_IF_ERROR(room(path));
      }
    }
    VERGER_TRY(auto file, disk_.open(path, mode));
    return std::unique_ptr<File>(std::make_unique<FileOfIt>(*this, std::move(file)));
  }
  Result<bool> exists(const Path& path) override { return disk_.exists(path); }
  Result<std::uint64_t> file_size(const Path& path) override { return disk_.file_size(path); }
  Result<std::vector<DirectoryEntry>> list(const Path& directory) override {
    return disk_.list(directory);
  }
  Result<void> rename(const Path& from, const Path& to) override { return disk_.rename(from, to); }
  Result<void> remove(const Path& path) override { return disk_.remove(path); }
  Result<void> make_directories(const Path& path) override { return disk_.make_directories(path); }
  Result<void> sync_directory(const Path& directory) override {
    return disk_.sync_directory(directory);
  }
  Result<void> set_read_only(const Path& path, bool read_only) override {
    return disk_.set_read_only(path, read_only);
  }
  Result<DiskSpace> space(const Path& path) override {
    VERGER_TRY(auto space, disk_.space(path));
    space.available = full ? 0 : space.available;
    return space;
  }
  Result<std::unique_ptr<FileLock>> lock(const Path& path) override { return disk_.lock(path); }
  Result<void> link(const Path& from, const Path& to) override {
    VERGER_RETURN_IF_ERROR(room(to));
    return link_file(disk_, from, to);
  }

 private:
  class FileOfIt final : public File {
   public:
    FileOfIt(const FillingDisk& owner, std::unique_ptr<File> file)
        : owner_(owner), file_(std::move(file)) {}
    const Path& path() const override { return file_->path(); }
    Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
      return file_->read_at(offset, into);
    }
    Result<void> write_at(std::uint64_t offset, ByteView bytes) override {
      VERGER_RETURN_IF_ERROR(owner_.room(path()));
      return file_->write_at(offset, bytes);
    }
    Result<std::uint64_t> size() const override { return file_->size(); }
    Result<void> resize(std::uint64_t size) override { return file_->resize(size); }
    Result<void> sync() override { return file_->sync(); }

   private:
    const FillingDisk& owner_;
    std::unique_ptr<File> file_;
  };

  [[nodiscard]] Result<void> room(const Path& path) const {
    return full ? Result<void>(Error{Errc::kNoSpace, path.string() + ": no space left on device"})
                : Result<void>();
  }

  FileSystem& disk_;
};

}  // namespace verger::test
