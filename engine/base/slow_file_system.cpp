#include "engine/base/slow_file_system.h"

#include <utility>

namespace verger {

class SlowFileSystem::SlowFile final : public ForwardingFile {
 public:
  SlowFile(const SlowFileSystem& owner, std::unique_ptr<File> file)
      : ForwardingFile(std::move(file)), owner_(owner) {}

  Result<void> sync() override {
    owner_.before_sync_();
    return below().sync();
  }

 private:
  const SlowFileSystem& owner_;
};

Result<std::unique_ptr<File>> SlowFileSystem::open(const Path& path, OpenMode mode) {
  VERGER_TRY(auto file, below().open(path, mode));
  return std::unique_ptr<File>(std::make_unique<SlowFile>(*this, std::move(file)));
}

Result<void> SlowFileSystem::sync_directory(const Path& directory) {
  before_sync_();
  return below().sync_directory(directory);
}

}  // namespace verger
