#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "engine/base/forwarding_file_system.h"

namespace verger::tool {

/// A file system whose writes and syncs happen in threads of their own, while the caller prepares
/// the next ones. Only for files not relied on before finish(): sync() returns before
/// anything is durable. What was written can be read back at once. An error of a background
/// operation is the answer to some later one, and to finish(). One thread uses it.
class BackgroundFiles final : public ForwardingFileSystem {
 public:
  explicit BackgroundFiles(FileSystem& files);
  /// Waits for what was begun; its errors are lost without finish().
  ~BackgroundFiles() override;
  /// Everything written and synced so far is on the disk when this returns.
  Result<void> finish();

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override;
  Result<std::uint64_t> file_size(const Path& path) override;
  Result<std::vector<DirectoryEntry>> list(const Path& directory) override;
  Result<void> rename(const Path& from, const Path& to) override;
  Result<void> sync_directory(const Path& directory) override;

 private:
  class BackgroundFile;
  struct Write {
    std::shared_ptr<File> file;
    std::uint64_t offset = 0;
    Bytes bytes{};
  };

  Result<std::uint64_t> queue_write(Write write);
  /// Waits for the writes up to the `number`th.
  Result<void> wait_for_write(std::uint64_t number);
  Result<void> queue_sync(std::shared_ptr<File> file);
  void write_all();
  void sync_all();
  [[nodiscard]] Result<void> state() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Write> writes_;
  std::deque<std::shared_ptr<File>> syncs_;
  std::uint64_t writes_queued_ = 0;
  std::uint64_t writes_done_ = 0;
  std::uint64_t syncs_queued_ = 0;
  std::uint64_t syncs_done_ = 0;
  std::size_t bytes_waiting_ = 0;
  bool stopping_ = false;
  std::optional<Error> failure_;
  std::set<Path> directories_;
  std::jthread writer_;
  std::jthread syncer_;
};

}  // namespace verger::tool
