#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include "engine/base/bytes.h"
#include "engine/base/result.h"

namespace verger::object_store::detail {

/// How many bytes the readers of a store may hold together. Safe from any thread.
class ReadAheadBudget {
 public:
  explicit ReadAheadBudget(std::size_t most) : left_(static_cast<std::int64_t>(most)) {}
  [[nodiscard]] bool take(std::size_t bytes);
  void give_back(std::size_t bytes);

 private:
  std::atomic<std::int64_t> left_;
};

/// Reads content that is far away: where it is read from front to back, more than was asked for is
/// read at once, as far as the budget goes. Safe from any thread.
class ReadAhead {
 public:
  using Read = std::function<Result<void>(std::uint64_t offset, MutableBytes into)>;
  /// `most`: bytes read at once; `size`: of the content. `budget` outlives it.
  ReadAhead(Read read, std::uint64_t size, std::size_t most, ReadAheadBudget& budget);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Errors: those of `read`; kCorruption when the content ends before.
  Result<void> read_exact(std::uint64_t offset, MutableBytes into);

 private:
  void drop_window();
  /// Into the window, from `offset` on; false: nothing was read.
  Result<bool> fill_window(std::uint64_t offset, std::size_t wanted);

  Read read_;
  std::uint64_t size_;
  std::size_t most_;
  ReadAheadBudget& budget_;
  std::mutex mutex_;
  Bytes window_;
  std::uint64_t window_at_ = 0;
  std::size_t next_size_ = 0;   ///< of the next window
  std::uint64_t expected_ = 0;  ///< where a reader from front to back reads next
};

}  // namespace verger::object_store::detail
