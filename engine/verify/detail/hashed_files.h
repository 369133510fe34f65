#pragma once

#include <array>
#include <mutex>
#include <vector>

#include "engine/base/md5_lanes.h"
#include "engine/verify/detail/expected_entries.h"
#include "engine/verify/detail/lanes.h"

namespace verger::verify::detail {

/// A file that is read from end to end once: for its MD5, and for what it holds.
class HashedFile {
 public:
  HashedFile() = default;
  virtual ~HashedFile() = default;
  HashedFile(const HashedFile&) = delete;
  HashedFile& operator=(const HashedFile&) = delete;

  /// The next bytes to be hashed, `size` or less; none at the end. Valid until the next call.
  virtual ByteView read(std::size_t size) = 0;
  /// Looks at what was read; `part` takes the entries that records should have, if any does.
  virtual void look(ExpectedEntries::Part* part) = 0;
  /// After the last byte. `digest` of all of them.
  virtual void end(const Md5Digest& digest) = 0;
};

/// Files that several pieces of work share: each takes one when it has room for it.
class HashedFileQueue {
 public:
  /// `workers` share the files.
  explicit HashedFileQueue(std::size_t workers) : workers_(workers) {}
  /// `file` outlives it.
  void add(HashedFile& file) { files_.push_back(&file); }
  /// Nothing for one that has its share already; nullptr, too, when none is left.
  HashedFile* take(std::size_t has);

 private:
  std::size_t workers_;
  std::mutex mutex_;
  std::vector<HashedFile*> files_;
  std::size_t next_ = 0;
};

/// Reads files side by side, several at once, whose checksums are computed together.
class HashedFilesWork final : public Work {
 public:
  /// All outlive it. `part` may be nullptr.
  HashedFilesWork(HashedFileQueue& queue, ExpectedEntries::Part* part)
      : queue_(queue), part_(part) {}

  bool step(std::uint32_t units) override;
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }

 private:
  void take_files();
  /// Bytes read; `size` of each file, or less.
  std::uint64_t read_pieces(std::size_t size);

  HashedFileQueue& queue_;
  ExpectedEntries::Part* part_;
  std::array<HashedFile*, Md5Lanes::kLanes> files_{};
  Md5Lanes hashes_;
  std::uint64_t bytes_ = 0;
};

}  // namespace verger::verify::detail
