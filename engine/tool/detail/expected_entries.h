#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "engine/index/sorted_entries.h"
#include "engine/streams/event_store.h"
#include "engine/tool/detail/findings.h"

namespace verger::tool {

/// How a verification works.
struct VerifyOptions {
  int threads = 1;
  Path scratch;  ///< temporary files of sorting, when there are very many events
};

/// The entry that each committed event of a log should have in the index, in the order of tables.
class ExpectedEntries {
 public:
  /// Reads the whole log, by several threads. What cannot be read is reported; complete() is false
  /// then.
  static Result<ExpectedEntries> read(ToolContext& tool, const streams::Database& database,
                                      const VerifyOptions& options, Findings& findings);

  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] std::uint64_t count() const;
  /// The number that a commit gave to the prepare at a position; nullopt for one without a commit.
  [[nodiscard]] std::optional<EventNumber> number_by_commit(LogPosition position) const;

  /// Moves to the next entry, descending; false at the end. Errors: kIo.
  Result<bool> advance();
  [[nodiscard]] const index::IndexEntry& current() const {
    return parts_[next_]->entries.current();
  }

 private:
  struct Part {
    explicit Part(index::SortedEntries sorted) : entries(std::move(sorted)) {}
    index::SortedEntries entries;
    std::map<std::int64_t, EventNumber> by_commit;
    Findings findings;
    bool complete = true;
    bool more = true;
    Result<void> outcome;
  };
  struct Reader;

  std::vector<std::unique_ptr<Part>> parts_;
  std::size_t next_ = 0;
  bool started_ = false;
  bool complete_ = true;
};

}  // namespace verger::tool
