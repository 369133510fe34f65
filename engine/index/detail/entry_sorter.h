#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/random.h"
#include "engine/index/detail/entry_reader.h"
#include "engine/index/detail/merge.h"
#include "engine/index/entry.h"

namespace verger::index::detail {

/// Sorts any number of entries in the memory of one batch: full batches go to files in `directory`,
/// which are removed at the end (or, after a crash, at the next opening of the index).
class EntrySorter {
 public:
  EntrySorter(FileSystem& files, Path directory, Random& random, std::uint64_t batch);
  ~EntrySorter();
  EntrySorter(const EntrySorter&) = delete;
  EntrySorter& operator=(const EntrySorter&) = delete;

  Result<void> add(const IndexEntry& entry) {
    batch_.push_back(entry);
    ++count_;
    return batch_.size() < batch_size_ ? Result<void>() : write_run();
  }
  std::uint64_t count() const { return count_; }

  /// After the last add(): moves to the next entry in descending order; false at the end.
  Result<bool> advance();
  const IndexEntry& current() const { return merge_->current(); }

 private:
  class Source {
   public:
    explicit Source(const std::vector<IndexEntry>& batch) : batch_(&batch) {}
    Source(const File& file, std::uint64_t count)
        : reader_(std::in_place, file, 0, kNewestPTableVersion, count) {}
    Result<bool> advance() {
      return reader_ ? reader_->advance() : Result<bool>(++next_ <= batch_->size());
    }
    const IndexEntry& current() const {
      return reader_ ? reader_->current() : (*batch_)[next_ - 1];
    }

   private:
    const std::vector<IndexEntry>* batch_ = nullptr;
    std::size_t next_ = 0;
    std::optional<EntryReader> reader_;
  };
  struct Run {
    Path path;
    std::unique_ptr<File> file;
    std::uint64_t count = 0;
  };
  void sort_batch();
  Result<void> write_run();

  FileSystem& files_;
  Path directory_;
  Random& random_;
  std::uint64_t batch_size_;
  std::uint64_t count_ = 0;
  std::vector<IndexEntry> batch_;
  std::vector<Run> runs_;
  std::optional<KWayMerge<Source>> merge_;
};

/// Ends the names of a sorter's files.
inline constexpr std::string_view kRunSuffix = ".run.tmp";

}  // namespace verger::index::detail
