#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/random.h"
#include "engine/index/detail/entry_reader.h"
#include "engine/index/detail/merge.h"
#include "engine/index/entry.h"

namespace verger::index::detail {

/// Sorts any number of entries in the memory of one batch: full batches go to files in `directory`,
/// which are removed at the end (or, after a crash, at the next opening of the index).
///
/// Entries are dealt out by the upper bits of their hash when they are added. What the batches have
/// of one such bucket is then brought together, and dealt out by further bits. Where the entries of
/// each stream were added in ascending order hardly anything is left to sort.
class EntrySorter {
 public:
  EntrySorter(FileSystem& files, Path directory, Random& random, std::uint64_t batch);
  ~EntrySorter();
  EntrySorter(const EntrySorter&) = delete;
  EntrySorter& operator=(const EntrySorter&) = delete;

  Result<void> add(const IndexEntry& entry) {
    auto*& last = held_[bucket_of(entry.hash)];
    if (last == nullptr || last->used == kBlockEntries) {
      last = new_block(last);
    }
    last->entries[last->used++] = entry;
    ++count_;
    return ++held_count_ < batch_size_ ? Result<void>() : write_run();
  }
  std::uint64_t count() const { return count_; }

  /// After the last add(): moves to the next entry in descending order; false at the end.
  Result<bool> advance() { return ++at_ < sorted_.size() ? Result<bool>(true) : refill(); }
  const IndexEntry& current() const { return sorted_[at_]; }
  /// Those behind current() that are sorted already, which may be none; and moving over the first
  /// `count` of them.
  std::span<const IndexEntry> held() const {
    return at_ < sorted_.size() ? std::span(sorted_).subspan(at_ + 1)
                                : std::span<const IndexEntry>();
  }
  void skip(std::size_t count) { at_ += count; }
  /// The same for many entries at once, those behind current(); none at the end.
  Result<std::span<const IndexEntry>> next_piece();

 private:
  static constexpr unsigned kBucketBits = 8;
  static constexpr std::size_t kBuckets = std::size_t{1} << kBucketBits;
  static constexpr std::size_t kBlockEntries = 31;

  /// Some entries of a bucket, in the order in which they were added.
  struct Block {
    std::array<IndexEntry, kBlockEntries> entries;
    std::size_t used = 0;
    Block* before = nullptr;
  };
  struct Run {
    Path path;
    std::unique_ptr<File> file;
    std::array<std::uint64_t, kBuckets + 1> starts{};  ///< of the buckets, in entries
  };
  class Source;

  /// Descending, as the entries.
  static std::size_t bucket_of(StreamHash hash) {
    return kBuckets - 1 - static_cast<std::size_t>(hash.value() >> (64U - kBucketBits));
  }
  Block* new_block(Block* before);
  /// Puts what is held of a bucket behind `out`, last entry first.
  void take_held(std::size_t bucket, std::vector<IndexEntry>& out) const;
  std::uint64_t held_of(std::size_t bucket) const;
  /// Sorts `piece_`, entries of one bucket, into `sorted_`.
  void sort_piece();
  void sort_part(std::span<IndexEntry> part);
  Result<void> write_run();
  Result<bool> refill();
  Result<void> load(std::size_t bucket);
  Result<void> merge_more();

  FileSystem& files_;
  Path directory_;
  Random& random_;
  std::uint64_t batch_size_;
  std::uint64_t count_ = 0;
  std::array<Block*, kBuckets> held_{};  ///< the last block of each bucket
  std::uint64_t held_count_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::size_t blocks_used_ = 0;
  std::vector<Run> runs_;

  std::vector<std::uint32_t> ends_;
  std::vector<std::uint32_t> number_ends_;
  std::vector<IndexEntry> copy_;
  std::vector<IndexEntry> piece_;
  std::vector<IndexEntry> sorted_;
  std::size_t at_ = 0;
  std::size_t next_bucket_ = 0;
  std::optional<KWayMerge<Source>> merge_;  ///< of a bucket that is too large for memory
};

/// The entries of one bucket in a file, or in memory.
class EntrySorter::Source {
 public:
  explicit Source(std::vector<IndexEntry> entries) : entries_(std::move(entries)) {}
  Source(const File& file, std::uint64_t start, std::uint64_t count)
      : reader_(std::in_place, file, start * kEntrySize, kNewestPTableVersion, count) {}
  Result<bool> advance() {
    return reader_ ? reader_->advance() : Result<bool>(++next_ <= entries_.size());
  }
  const IndexEntry& current() const { return reader_ ? reader_->current() : entries_[next_ - 1]; }

 private:
  std::vector<IndexEntry> entries_;
  std::size_t next_ = 0;
  std::optional<EntryReader> reader_;
};

/// Ends the names of a sorter's files.
inline constexpr std::string_view kRunSuffix = ".run.tmp";

}  // namespace verger::index::detail
