#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "controller/executor/executor.h"
#include "controller/journal/journal.h"
#include "engine/base/file_system.h"

namespace verger::controller {

/// How long the journal keeps what. Clusters, policies, tokens and agents are kept for ever, and so
/// is all of a run that has not ended but what its later events supersede.
struct RetentionRules {
  /// A step's progress of which there is newer; what ended runs once waited for.
  std::chrono::hours progress{2};
  /// Answers to requests with an Idempotency-Key.
  std::chrono::hours answers{48};
  /// Plans, and due times that newer ones have settled.
  std::chrono::days plans{30};
  /// What happened in the middle of an ended run; its plan, its state and report stay.
  std::chrono::days run_details{30};
  std::chrono::days runs{400};
  /// Of a cluster: older ones go sooner.
  std::size_t runs_of_cluster = 500;
  /// Of a cluster: these stay at any age, since planning reckons with their durations.
  std::size_t runs_kept = 10;
  std::chrono::days audit{400};
};

struct RetentionParts {
  Journal& journal;
  Executor& runs;
  Clock& clock;
  Log& log;
  ControllerEpoch epoch;
  FileSystem& files;
  Path archive;  ///< directory: gets what people may want to read, before it is removed
  RetentionRules rules;
};

/// What a compaction did.
struct Compacted {
  std::int64_t progress = 0;  ///< events, as the others
  std::int64_t answers = 0;
  std::int64_t plans = 0;
  std::int64_t schedules = 0;
  std::int64_t run_details = 0;
  std::int64_t runs = 0;
  std::int64_t audit = 0;
  std::int64_t notifications = 0;     ///< that ended longer ago than answers are kept
  std::int64_t seals = 0;             ///< of snapshots that newer ones replaced
  std::int64_t records = 0;           ///< of earlier compactions
  std::vector<std::string> archived;  ///< names of files
  JournalSize before;
  JournalSize after;

  [[nodiscard]] std::int64_t events() const {
    return progress + answers + plans + schedules + run_details + runs + audit + notifications +
           seals + records;
  }
};

/// Removes from the journal what its rules do not keep: by age, and runs by count. What people may
/// request later (the audit, runs, plans) is written to a file of the archive first, whose name and
/// SHA-256 are part of the event that records the removal. One thread.
class Retention {
 public:
  explicit Retention(RetentionParts parts);
  ~Retention();

  /// In pieces, so that runs and requests need not wait. Errors: kConflict (one is under way), the
  /// journal's, those of the archive; then a part may be done.
  net::awaitable<Result<Compacted>> compact(std::string by, std::string reason);

  struct Status {
    std::int64_t removed = 0;    ///< events, since this controller started
    std::optional<Ticks> ended;  ///< the last compaction that ended well
  };
  [[nodiscard]] Status status() const;
  /// Read from the store once a minute at most. Errors: the journal's.
  Result<JournalSize> size();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::controller
