#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/file_verification.h"
#include "engine/base/result.h"
#include "engine/base/uuid.h"
#include "engine/index/entry.h"

namespace verger::index {

/// What this program writes; a scavenge writes older ones anew.
inline constexpr int kNewestTableVersion = 4;

/// One immutable, sorted index file, versions 1 to 4, with its bloom filter where there is one.
/// Version 1 holds the upper 32 bits of the hash only: lookups find by them and return the
/// requested hash; entry() and PTableScanner give those bits, right-aligned. Safe from any thread.
/// Format: docs/formats/index.md.
class PTable {
 public:
  /// Checks structure (header, footer, sizes, midpoints), not the MD5. `cache_depth`: how many
  /// midpoints a server would have in memory of a table without any, which is where its search for
  /// the latest entry begins. Errors: kCorruption, kUnsupported (a newer version), kNotFound, kIo,
  /// naming the file.
  static Result<std::shared_ptr<const PTable>> open(FileSystem& files, const Path& path,
                                                    int cache_depth);
  ~PTable();

  const Path& path() const;
  int version() const;
  std::uint64_t count() const;
  std::uint64_t file_size() const;
  bool has_bloom_filter() const;

  /// May the table hold `hash`? A miss is certain.
  bool may_contain(StreamHash hash) const;
  /// Entries with this hash and a number in [from, to], descending, appended to `out`; at most
  /// `limit`. Errors: kCorruption (order), kIo.
  Result<void> range(StreamHash hash, EventNumber from, EventNumber to, std::size_t limit,
                     std::vector<IndexEntry>& out) const;
  /// The same from the smallest number up: ascending.
  Result<void> range_forward(StreamHash hash, EventNumber from, EventNumber to, std::size_t limit,
                             std::vector<IndexEntry>& out) const;
  /// The greatest entry with this hash; the smallest one.
  Result<std::optional<IndexEntry>> latest(StreamHash hash) const;
  Result<std::optional<IndexEntry>> oldest(StreamHash hash) const;
  /// Greatest entry with a number below `number`; smallest entry with a number above it.
  Result<std::optional<IndexEntry>> previous(StreamHash hash, EventNumber number) const;
  Result<std::optional<IndexEntry>> next(StreamHash hash, EventNumber number) const;
  /// See Index::latest_before.
  Result<std::optional<IndexEntry>> latest_before(StreamHash hash, LogPosition limit,
                                                  const EntryFilter& is_of_stream) const;
  /// Entry `n` in file order (descending).
  Result<IndexEntry> entry(std::uint64_t n) const;
  /// Entries `first` to `first` + `count` - 1 in file order, in place of what `out` held.
  /// Errors: kCorruption (order), kIo.
  Result<void> read(std::uint64_t first, std::uint64_t count, std::vector<IndexEntry>& out) const;
  /// The number, in file order, of the first entry whose hash is below `hash`; count() when there
  /// is none. Not for version 1.
  Result<std::uint64_t> first_below(StreamHash hash) const;
  /// File offset of entry `n`, for messages.
  std::uint64_t entry_offset(std::uint64_t n) const;
  /// Errors: kCorruption, kIo, those of `pause`, which is called for each megabyte. Blocks: call it
  /// from a job or a pool.
  Result<void> verify_md5(const std::function<Result<void>()>& pause = {}) const;
  /// The same for FileVerification.
  static VerifiedFile verified_file(std::shared_ptr<const PTable> table);

 private:
  friend class PTableScanner;
  struct State;
  Result<void> compare_md5(const Md5Digest& computed) const;
  explicit PTable(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Reads a PTable's entries in file order through a large buffer.
class PTableScanner {
 public:
  explicit PTableScanner(std::shared_ptr<const PTable> table);
  PTableScanner(PTableScanner&&) noexcept;
  PTableScanner& operator=(PTableScanner&&) noexcept;
  ~PTableScanner();
  /// nullptr behind the last entry; valid until the next call. Errors: kCorruption (order), kIo.
  Result<const IndexEntry*> next();
  /// The entries that next() would return one after the other, as many as are in memory, but at
  /// least one; none behind the last one. Valid until the next call. Errors: kCorruption (order),
  /// kIo.
  Result<std::span<const IndexEntry>> ahead();
  /// Those of ahead() that are in memory already, which may be none.
  [[nodiscard]] std::span<const IndexEntry> held() const;
  /// Leaves out the first `count` of ahead(), or of held().
  void skip(std::size_t count);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes a version-4 PTable and its bloom filter; entries must come descending. Destroying it
/// before finish() removes the files.
class PTableWriter {
 public:
  /// Files "<name>" and "<name>.bloomfilter". `bloom_entries` sizes the filter (for an index
  /// scavenge: the count before dropping). `hash_in_background`: a thread of its own computes the
  /// MD5. Errors: kExists, kNoSpace, kIo.
  static Result<PTableWriter> create(FileSystem& files, const Path& directory, const Uuid& name,
                                     std::uint64_t bloom_entries, int cache_depth,
                                     bool hash_in_background = false);
  PTableWriter(PTableWriter&&) noexcept;
  PTableWriter& operator=(PTableWriter&&) noexcept;
  ~PTableWriter();
  /// Errors: kInvalidArgument (greater than the entry before), kNoSpace, kIo.
  Result<void> append(const IndexEntry& entry);
  std::uint64_t count() const;
  /// Midpoints, footer, MD5, sync of both files and of the directory. Returns the table's path.
  Result<Path> finish();

 private:
  struct State;
  explicit PTableWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace verger::index
