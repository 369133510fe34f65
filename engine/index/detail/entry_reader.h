#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/index/detail/ptable_format.h"
#include "engine/index/entry.h"

namespace verger::index::detail {

/// Decodes `count` entries starting at file offset `offset`. Errors: kCorruption, kIo.
Result<void> read_entries(const File& file, std::uint64_t offset, int version, std::uint64_t count,
                          std::vector<IndexEntry>& out);

/// Walks over consecutive entries of a file through a buffer of up to 8192 of them, checking that
/// they descend.
class EntryReader {
 public:
  /// `file` must outlive the reader.
  EntryReader(const File& file, std::uint64_t offset, int version, std::uint64_t count)
      : file_(&file), offset_(offset), version_(version), left_(count) {}

  /// Moves to the next entry; false behind the last one. Errors: kCorruption, kIo.
  Result<bool> advance() {
    if (++at_ < block_.size()) {
      return true;
    }
    return refill();
  }
  /// The entries that advance() would move over next, as many as are in memory, but at least one;
  /// none behind the last one. Valid until the next call. Errors: kCorruption, kIo.
  Result<std::span<const IndexEntry>> ahead() {
    if (at_ + 1 >= block_.size()) {
      VERGER_TRY(const bool more, refill());
      at_ = more ? static_cast<std::size_t>(-1) : 0;
    }
    return block_.empty() ? std::span<const IndexEntry>() : std::span(block_).subspan(at_ + 1);
  }
  /// Those of ahead() that are in memory already, which may be none.
  [[nodiscard]] std::span<const IndexEntry> held() const {
    return at_ + 1 < block_.size() ? std::span(block_).subspan(at_ + 1)
                                   : std::span<const IndexEntry>();
  }
  /// Moves over the first `count` of ahead(), or of held().
  void skip(std::size_t count) { at_ += count; }
  /// Valid after advance() has returned true.
  [[nodiscard]] const IndexEntry& current() const { return block_[at_]; }

 private:
  Result<bool> refill();

  const File* file_;
  std::uint64_t offset_;
  int version_;
  std::uint64_t left_;
  std::size_t at_ = 0;
  std::vector<IndexEntry> block_;
};

/// Error for keys that do not descend at `offset`.
Error out_of_order(const Path& path, std::uint64_t offset);

}  // namespace verger::index::detail
