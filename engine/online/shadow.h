#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/base/log.h"
#include "engine/base/random.h"

namespace verger::online_scavenge {

/// A database that a server has open.
struct DatabasePlace {
  Path database;
  Path index{};  ///< empty: "index" in `database`
  [[nodiscard]] Path index_directory() const { return index.empty() ? database / "index" : index; }
};

/// What the work is done with; it outlives the jobs.
struct Machine {
  FileSystem& files;
  Clock& clock;
  Random& random;
  Log& log;
};

/// How far a job is, in its units.
struct WorkProgress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;  ///< 0: not known
  std::string unit{};
  std::uint64_t bytes = 0;  ///< written or read so far
};

/// The directory in which a server's files are scavenged beside it: ".verger-online" in the
/// database directory. There because links need the same file system, and a database directory is
/// often a mount point of its own; a server looks at the files of its directory, not at
/// directories in it.
Path shadow_directory(const Path& database);
/// Of the shadow: where its scavenging.db is found by scavenge::ScavengeState.
Path shadow_index(const Path& database);
/// The name, in the database directory, of a new chunk file that is offered to the server.
std::string offered_name(std::string_view uuid);

/// Removes the shadow and every offered file that a server has not taken. Nothing where there is
/// none. Only while no other online scavenge works there. Errors: kIo.
Result<void> remove_shadow(FileSystem& files, const Path& database);

/// Makes the shadow, in place of a former one: links of the completed chunks and of the index
/// tables, copies of the open chunk, the index map, the checkpoints and scavenging.db. What a
/// server writes meanwhile does not matter, as long as it switches no chunks: hold its chunk lock.
///
/// Errors: kUnsupported: another file system, or one without links; kRefused: the log is to be cut
/// at the server's next start; kUnavailable: the files changed too fast; kNoSpace, kCorruption,
/// kIo.
class ShadowJob final : public Job {
 public:
  ShadowJob(const Machine& machine, DatabasePlace place);
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] const WorkProgress& progress() const { return progress_; }

 private:
  enum class Part : std::uint8_t { kClear, kIndex, kState, kLog };
  Result<void> clear();
  Result<void> link_index();
  Result<void> copy_state();
  Result<void> link_log();
  Result<void> write_checkpoint(std::string_view name, std::int64_t value);

  Machine machine_;
  DatabasePlace place_;
  Part part_ = Part::kClear;
  WorkProgress progress_{.unit = "files"};
};

}  // namespace verger::online_scavenge
