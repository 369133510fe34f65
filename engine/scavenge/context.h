#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/background_release.h"
#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/index/index.h"
#include "engine/log/transaction_log.h"
#include "engine/scavenge/events.h"
#include "engine/scavenge/options.h"
#include "engine/scavenge/rules.h"
#include "engine/scavenge/scavenge_state.h"
#include "engine/scavenge/throttle.h"
#include "engine/scavenge/types.h"

namespace verger::scavenge {

/// What a scavenge works on and with. All of it outlives the job.
struct ScavengeParts {
  log::TransactionLog& log;
  index::Index& index;
  FileSystem& files;
  Clock& clock;
  Random& random;
  Log& out;
};

/// What the stages of one run share.
struct RunContext {
  ScavengeParts parts;
  const ScavengeOptions& options;
  ScavengeEvents& events;
  ScavengeState& state;
  Throttle& throttle;
  const std::atomic<bool>& stop;
  ScavengePoint point;
  ScavengeProgress& progress;
  /// Committed records below the point with a negative event number that the accumulation of this
  /// run has met: the first kMostWithoutNumber of them.
  struct WithoutNumber {
    LogPosition position;
    std::string stream;
    EventNumber number;
  };
  static constexpr std::size_t kMostWithoutNumber = 1024;
  std::vector<WithoutNumber> without_number = {};

  /// This run has calculated every active stream, and the index has no entry below the point of one
  /// of them that goes, whichever table it lies in.
  bool active_entries_stay = false;

  /// Files whose checksums this run has compared, or computed: chunks by name, tables by path.
  std::set<std::string> sound_files = {};

  /// Chunk files that this run has written, by name.
  std::set<std::string> own_files = {};

  /// Destroys objects while the stages continue; not made where nothing may work in the background.
  std::unique_ptr<BackgroundRelease> releases = {};

  [[nodiscard]] RunRules rules() const {
    return {point.position, point.effective_now, options.unsafe_ignore_hard_delete};
  }
  [[nodiscard]] std::int32_t chunk_of(LogPosition position) const {
    return parts.log.chunk_of(position).value();
  }
  /// kCancelled once the run is to stop.
  [[nodiscard]] Result<void> check_stop() const {
    if (stop.load(std::memory_order_relaxed)) {
      return Error{Errc::kCancelled, "the scavenge was stopped"};
    }
    return {};
  }
  /// Is the chunk still to be compared with its checksum?
  [[nodiscard]] bool is_unchecked(const log::Chunk& chunk) const {
    return options.compare_checksums && chunk.completed() &&
           !sound_files.contains(chunk.path().filename().string());
  }
  void note_sound(const log::Chunk& chunk) { sound_files.insert(chunk.path().filename().string()); }
  /// Notes a chunk file that this run has written and switched in.
  void note_own(const log::Chunk& chunk) {
    note_sound(chunk);
    own_files.insert(chunk.path().filename().string());
  }
  [[nodiscard]] bool is_own(const log::Chunk& chunk) const {
    return own_files.contains(chunk.path().filename().string());
  }
  /// Destroys what may hold the last reference to a replaced file.
  void release(std::shared_ptr<const void> object) {
    if (releases == nullptr && options.hash_in_background) {
      releases = std::make_unique<BackgroundRelease>();
    }
    if (releases != nullptr) {
      releases->release(std::move(object));
    }
  }
  [[nodiscard]] bool is_unchecked(const index::PTable& table) const {
    return options.compare_checksums && table.count() > 0 &&
           !sound_files.contains(table.path().string());
  }
  void note_sound(const index::PTable& table) { sound_files.insert(table.path().string()); }
  /// Compares an index table with its checksum; all of them. Errors: kCorruption, kIo, kCancelled.
  Result<void> check_table(const index::PTable& table) {
    if (is_unchecked(table)) {
      VERGER_RETURN_IF_ERROR(table.verify_md5([this] { return check_stop(); }));
      note_sound(table);
    }
    return {};
  }
  Result<void> check_tables() {
    for (const auto& slot : parts.index.tables()) {
      VERGER_RETURN_IF_ERROR(check_table(*slot.table));
    }
    return {};
  }
  /// One `unit` of `stage` is finished (a chunk, a stream, a table); ends the run where the options
  /// request it.
  [[nodiscard]] Result<void> unit_finished(Stage stage, std::uint64_t nth) const {
    const auto& wish = options.stop_after;
    if (wish && wish->stage == stage && wish->nth == nth) {
      return Error{Errc::kCancelled, "the scavenge was stopped on request"};
    }
    return {};
  }
};

/// One stage of a run. step() works for about `budget` units and says kMore, kRest or kDone. A
/// stage that fails or is stopped leaves an open transaction to be rolled back.
class StageTask {
 public:
  virtual ~StageTask() = default;
  virtual Result<StepOutcome> step(Budget budget) = 0;
};

}  // namespace verger::scavenge
