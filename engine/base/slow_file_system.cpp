#include "engine/base/slow_file_system.h"

#include <utility>

namespace verger {

class SlowFileSystem::SlowFile final : public File {
 public:
  SlowFile(const SlowFileSystem& owner, std::unique_ptr<File> file)
      : owner_(owner), file_(std::move(file)) {}

  const Path& path() const override { return file_->path(); }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    return file_->read_at(offset, into);
  }
  Result<void> write_at(std::uint64_t offset, ByteView bytes) override {
    return file_->write_at(offset, bytes);
  }
  Result<std::uint64_t> size() const override { return file_->size(); }
  Result<void> resize(std::uint64_t size) override { return file_->resize(size); }
  Result<void> sync() override {
    owner_.before_sync_();
    return file_->sync();
  }

 private:
  const SlowFileSystem& owner_;
  std::unique_ptr<File> file_;
};

Result<std::unique_ptr<File>> SlowFileSystem::open(const Path& path, OpenMode mode) {
  VERGER_TRY(auto file, disk_.open(path, mode));
  return std::unique_ptr<File>(std::make_unique<SlowFile>(*this, std::move(file)));
}

Result<void> SlowFileSystem::sync_directory(const Path& directory) {
  before_sync_();
  return disk_.sync_directory(directory);
}

}  // namespace verger
