#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "engine/base/file_links.h"
#include "engine/base/forwarding_file_system.h"

namespace verger::test {

/// A disk that is full from one moment to the next: what is there can be read, renamed and removed,
/// but nothing is written, made or linked. Safe from any thread.
class FillingDisk final : public ForwardingFileSystem, public FileLinks {
 public:
  /// `disk` outlives it, and it outlives its files.
  explicit FillingDisk(FileSystem& disk) : ForwardingFileSystem(disk) {}

  std::atomic<bool> full = false;

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override {
    if (mode == OpenMode::kCreate || mode == OpenMode::kCreateNew) {
      VERGER_TRY(const bool there, below().exists(path));
      if (!there) {
        VERGER_RETURN_IF_ERROR(room(path));
      }
    }
    VERGER_TRY(auto file, below().open(path, mode));
    return std::unique_ptr<File>(std::make_unique<FileOfIt>(*this, std::move(file)));
  }
  Result<DiskSpace> space(const Path& path) override {
    VERGER_TRY(auto space, below().space(path));
    space.available = full ? 0 : space.available;
    return space;
  }
  Result<void> link(const Path& from, const Path& to) override {
    VERGER_RETURN_IF_ERROR(room(to));
    return link_file(below(), from, to);
  }

 private:
  class FileOfIt final : public ForwardingFile {
   public:
    FileOfIt(const FillingDisk& owner, std::unique_ptr<File> file)
        : ForwardingFile(std::move(file)), owner_(owner) {}
    Result<void> write_at(std::uint64_t offset, ByteView bytes) override {
      VERGER_RETURN_IF_ERROR(owner_.room(path()));
      return below().write_at(offset, bytes);
    }

   private:
    const FillingDisk& owner_;
  };

  [[nodiscard]] Result<void> room(const Path& path) const {
    return full ? Result<void>(Error{Errc::kNoSpace, path.string() + ": no space left on device"})
                : Result<void>();
  }
};

}  // namespace verger::test
