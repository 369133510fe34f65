#include "engine/tool/detail/background_files.h"

namespace verger::tool {
namespace {

constexpr std::size_t kMostBytesWaiting = std::size_t{16} << 20U;

}  // namespace

class BackgroundFiles::BackgroundFile final : public File {
 public:
  BackgroundFile(BackgroundFiles& owner, std::shared_ptr<File> file)
      : owner_(owner), file_(std::move(file)) {}

  const Path& path() const override { return file_->path(); }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    VERGER_RETURN_IF_ERROR(owner_.wait_for_write(last_write_));
    return file_->read_at(offset, into);
  }
  Result<void> write_at(std::uint64_t offset, ByteView bytes) override {
    VERGER_TRY(last_write_,
               owner_.queue_write(
                   {.file = file_, .offset = offset, .bytes = Bytes(bytes.begin(), bytes.end())}));
    return {};
  }
  Result<std::uint64_t> size() const override {
    VERGER_RETURN_IF_ERROR(owner_.wait_for_write(last_write_));
    return file_->size();
  }
  Result<void> resize(std::uint64_t size) override {
    VERGER_RETURN_IF_ERROR(owner_.wait_for_write(last_write_));
    return file_->resize(size);
  }
  Result<void> sync() override {
    VERGER_RETURN_IF_ERROR(owner_.wait_for_write(last_write_));
    return owner_.queue_sync(file_);
  }

 private:
  BackgroundFiles& owner_;
  std::shared_ptr<File> file_;
  std::uint64_t last_write_ = 0;
};

BackgroundFiles::BackgroundFiles(FileSystem& files)
    : ForwardingFileSystem(files),
      writer_([this] { write_all(); }),
      syncer_([this] { sync_all(); }) {}

BackgroundFiles::~BackgroundFiles() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

Result<void> BackgroundFiles::state() const {
  return failure_ ? Result<void>(*failure_) : Result<void>{};
}

Result<void> BackgroundFiles::finish() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return failure_ || (writes_done_ == writes_queued_ && syncs_done_ == syncs_queued_);
    });
    VERGER_RETURN_IF_ERROR(state());
  }
  for (const auto& directory : directories_) {
    VERGER_RETURN_IF_ERROR(below().sync_directory(directory));
  }
  directories_.clear();
  return {};
}

Result<std::uint64_t> BackgroundFiles::queue_write(Write write) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || bytes_waiting_ < kMostBytesWaiting; });
  VERGER_RETURN_IF_ERROR(state());
  bytes_waiting_ += write.bytes.size();
  writes_.push_back(std::move(write));
  changed_.notify_all();
  return ++writes_queued_;
}

Result<void> BackgroundFiles::wait_for_write(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || writes_done_ >= number; });
  return state();
}

Result<void> BackgroundFiles::queue_sync(std::shared_ptr<File> file) {
  const std::lock_guard lock(mutex_);
  VERGER_RETURN_IF_ERROR(state());
  // A chunk is synced for its footer only: what waits for the same file is done by one sync.
  if (syncs_.empty() || syncs_.back() != file) {
    syncs_.push_back(std::move(file));
    ++syncs_queued_;
    changed_.notify_all();
  }
  return {};
}

void BackgroundFiles::write_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !writes_.empty(); });
    if (writes_.empty()) {
      return;
    }
    auto write = std::move(writes_.front());
    writes_.pop_front();
    lock.unlock();
    const auto outcome = write.file->write_at(write.offset, write.bytes);
    write.file.reset();
    lock.lock();
    bytes_waiting_ -= write.bytes.size();
    ++writes_done_;
    if (!outcome && !failure_) {
      failure_ = outcome.error();
    }
    changed_.notify_all();
  }
}

void BackgroundFiles::sync_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !syncs_.empty(); });
    if (syncs_.empty()) {
      return;
    }
    auto file = std::move(syncs_.front());
    syncs_.pop_front();
    lock.unlock();
    const auto outcome = file->sync();
    file.reset();
    lock.lock();
    ++syncs_done_;
    if (!outcome && !failure_) {
      failure_ = outcome.error();
    }
    changed_.notify_all();
  }
}

Result<std::unique_ptr<File>> BackgroundFiles::open(const Path& path, OpenMode mode) {
  if (mode == OpenMode::kRead) {
    // Through another handle, so that all of it has to be there.
    VERGER_RETURN_IF_ERROR(wait_for_write(writes_queued_));
    return below().open(path, mode);
  }
  VERGER_TRY(auto file, below().open(path, mode));
  return std::unique_ptr<File>(
      std::make_unique<BackgroundFile>(*this, std::shared_ptr<File>(std::move(file))));
}

Result<std::uint64_t> BackgroundFiles::file_size(const Path& path) {
  VERGER_RETURN_IF_ERROR(wait_for_write(writes_queued_));
  return below().file_size(path);
}

Result<std::vector<DirectoryEntry>> BackgroundFiles::list(const Path& directory) {
  VERGER_RETURN_IF_ERROR(wait_for_write(writes_queued_));
  return below().list(directory);
}

/// The content under a name is there at once; which names survive a crash is not promised.
Result<void> BackgroundFiles::rename(const Path& from, const Path& to) {
  VERGER_RETURN_IF_ERROR(wait_for_write(writes_queued_));
  return below().rename(from, to);
}

Result<void> BackgroundFiles::sync_directory(const Path& directory) {
  directories_.insert(directory);
  return {};
}

}  // namespace verger::tool
