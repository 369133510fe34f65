#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/base/file_system.h"
#include "engine/base/random.h"
#include "engine/base/result.h"
#include "engine/index/entry.h"

namespace verger::index {

/// Any number of entries, sorted descending in the memory of one batch; what is more goes to
/// temporary files in `directory`, which are removed in the end. One thread at a time.
class SortedEntries {
 public:
  /// `batch` entries of 24 bytes are held in memory. What is passed outlives the object.
  SortedEntries(FileSystem& files, Path directory, Random& random, std::uint64_t batch);
  SortedEntries(SortedEntries&&) noexcept;
  SortedEntries& operator=(SortedEntries&&) noexcept;
  ~SortedEntries();
  /// Errors: kNoSpace, kIo.
  Result<void> add(const IndexEntry& entry);
  [[nodiscard]] std::uint64_t count() const;
  /// After the last add(): moves to the next entry; false at the end.
  Result<bool> advance();
  [[nodiscard]] const IndexEntry& current() const;
  /// Entries behind current(), as many as are in memory, which may be none; and moving over the
  /// first `count` of them.
  [[nodiscard]] std::span<const IndexEntry> held() const;
  void skip(std::size_t count);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::index
