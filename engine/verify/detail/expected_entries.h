#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/index/sorted_entries.h"
#include "engine/streams/event_store.h"
#include "engine/verify/detail/lanes.h"
#include "engine/verify/findings.h"

namespace verger::verify::detail {

/// The entry that each committed event of a log should have in the index, in the order of tables.
/// First the log is read, in `lanes` parts, or taken from others who read it: whole chunks, without
/// an error. Then the entries are walked along.
class ExpectedEntries {
 public:
  class Part;
  /// `scratch`, which is there: for temporary files, when there are more than `in_memory` events.
  /// All outlive it.
  ExpectedEntries(FileSystem& files, Path scratch, Random& random,
                  const streams::Database& database, std::uint64_t in_memory, std::size_t lanes,
                  scavenge::ParallelRunner& runner);
  ~ExpectedEntries();
  ExpectedEntries(const ExpectedEntries&) = delete;
  ExpectedEntries& operator=(const ExpectedEntries&) = delete;

  /// For one who reads chunks and gives their records to the part; one thread at a time.
  [[nodiscard]] Part* part(std::size_t lane) { return parts_[lane].get(); }
  /// Do the parts have the events of each chunk of the log? Otherwise what was added is of no use.
  /// Errors: of sorting, as scratch_error().
  Result<bool> has_all();

  /// A step of reading the log; true once it is read. What cannot be read is reported. Errors: of
  /// sorting, as scratch_error().
  Result<bool> read(std::uint32_t units, Findings& findings);
  [[nodiscard]] std::uint64_t bytes() const { return lanes_.bytes(); }
  [[nodiscard]] std::uint64_t total_bytes() const { return total_bytes_; }

  /// False: some of the log could not be read.
  [[nodiscard]] bool complete() const;
  [[nodiscard]] std::uint64_t count() const;
  /// The number that a commit gave to the prepare at a position; nullopt for one without a commit.
  [[nodiscard]] std::optional<EventNumber> number_by_commit(LogPosition position) const;

  /// Moves to the next entry, descending; false at the end. Errors: kIo, as scratch_error().
  Result<bool> advance();
  [[nodiscard]] const index::IndexEntry& current() const;
  /// Entries that follow current(), as many as are known, which may be none; and moving over the
  /// first `count` of them.
  [[nodiscard]] std::span<const index::IndexEntry> held() const;
  void skip(std::size_t count);
  /// What ended reading or walking along: it says nothing about the database.
  [[nodiscard]] const std::optional<Error>& scratch_error() const { return scratch_error_; }

 private:
  struct Shared;

  /// Error: of sorting.
  Result<void> check_parts();

  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Part>> parts_;
  Lanes lanes_;
  std::uint64_t total_bytes_ = 0;
  std::optional<Error> scratch_error_;
  std::size_t next_ = 0;
  bool started_ = false;
};

/// The events of some chunks.
class ExpectedEntries::Part final : public Work {
 public:
  Part(Shared& shared, index::SortedEntries sorted) : entries(std::move(sorted)), shared_(shared) {}

  /// Reads the next chunk that no part has.
  bool step(std::uint32_t units) override;
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }

  /// The next records of a chunk. After an error the part is no longer complete.
  void add(std::span<const log::LogRecord> records);
  /// All records of `chunk` were added.
  void note_read(const log::Chunk& chunk);

  index::SortedEntries entries;
  std::map<std::int64_t, EventNumber> by_commit;
  Findings findings;
  bool complete = true;
  bool more = true;
  Result<void> outcome;  ///< of sorting; what is wrong with the log is a finding
  /// That were added: path and size of the data.
  std::vector<std::pair<Path, std::int64_t>> read_chunks;

 private:
  /// False where there is none.
  bool next_chunk();
  Result<void> read_record();
  Result<void> add(const log::LogRecord& record);
  Result<void> add_event(const log::Prepare& prepare, EventNumber number);

  Shared& shared_;
  std::shared_ptr<const log::Chunk> chunk_;
  std::optional<log::ChunkScanner> scanner_;
  std::uint64_t bytes_ = 0;
};

}  // namespace verger::verify::detail
