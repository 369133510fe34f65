#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/index/sorted_entries.h"
#include "engine/streams/event_store.h"
#include "engine/verify/detail/lanes.h"
#include "engine/verify/findings.h"

namespace verger::verify::detail {

/// The entry that each committed event of a log should have in the index, in the order of tables.
/// First the log is read, in `lanes` parts; then the entries are walked along.
class ExpectedEntries {
 public:
  /// `scratch`, which is there: for temporary files, when there are more than `in_memory` events.
  /// All outlive it.
  ExpectedEntries(FileSystem& files, Path scratch, Random& random,
                  const streams::Database& database, std::uint64_t in_memory, std::size_t lanes,
                  scavenge::ParallelRunner& runner);
  ~ExpectedEntries();
  ExpectedEntries(const ExpectedEntries&) = delete;
  ExpectedEntries& operator=(const ExpectedEntries&) = delete;

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
  /// What ended reading or walking along: it says nothing about the database.
  [[nodiscard]] const std::optional<Error>& scratch_error() const { return scratch_error_; }

 private:
  class Part;
  struct Shared;

  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Part>> parts_;
  Lanes lanes_;
  std::uint64_t total_bytes_ = 0;
  std::optional<Error> scratch_error_;
  std::size_t next_ = 0;
  bool started_ = false;
};

}  // namespace verger::verify::detail
