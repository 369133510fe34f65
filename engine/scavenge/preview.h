#pragma once

#include <memory>
#include <optional>

#include "engine/base/job.h"
#include "engine/scavenge/context.h"
#include "engine/scavenge/events.h"
#include "engine/scavenge/options.h"
#include "engine/scavenge/scavenge_job.h"
#include "engine/scavenge/scavenge_state.h"

namespace verger::scavenge {

/// Where a preview keeps its copy of the state; any file system, also another than the database's.
struct Scratch {
  FileSystem& files;
  Path directory;  ///< a directory of the preview's own is made in it, and removed in the end
};

/// What a scavenge knows when it begins to change the database, found out without changing it: the
/// real accumulation and calculation, on a copy of scavenging.db. Log and index may be open
/// read-only, and belong to a running node.
///
/// open(), checkpoint(), choose(), step() to kDone; from then on the rest answers. One thread.
class Preview final : public Job {
 public:
  /// Errors: kUnavailable (scavenging.db changes too fast), kIo, kNoSpace, kCorruption.
  static Result<std::unique_ptr<Preview>> open(const ScavengeParts& parts, Scratch scratch,
                                               ScavengeOptions options);
  ~Preview() override;

  /// What the last scavenge left; after choose() what this one was found at.
  [[nodiscard]] const std::optional<Checkpoint>& checkpoint() const { return checkpoint_; }

  /// The point to preview. It is in the log, the last record of a completed chunk.
  void choose(const ScavengePoint& point) { point_ = point; }
  /// A point that would be written now, behind everything in the log.
  void assume(EventNumber number, Ticks now, std::int32_t threshold);

  /// Errors: those of a ScavengeJob that ends before chunks are executed.
  Result<StepOutcome> step(Budget budget) override;
  void request_stop() { stop_ = true; }
  [[nodiscard]] const ScavengeProgress& progress() const { return progress_; }

  [[nodiscard]] const ScavengeParts& parts() const { return parts_; }
  [[nodiscard]] const ScavengeOptions& options() const { return options_; }
  [[nodiscard]] const ScavengePoint& point() const { return point_; }
  [[nodiscard]] bool assumed() const { return options_.assumed_point; }
  [[nodiscard]] ScavengeState& state() { return *state_; }
  [[nodiscard]] RunRules rules() const {
    return {point_.position, point_.effective_now, options_.unsafe_ignore_hard_delete};
  }
  /// Size of the copied scavenging.db as it is now.
  [[nodiscard]] Result<std::uint64_t> state_bytes() const;
  /// The stage a run would resume with: kExecutingChunks, or a later one of an unfinished run.
  [[nodiscard]] Stage stage() const;
  /// Would the run look at this chunk in its execution?
  [[nodiscard]] bool reaches(const log::Chunk& chunk) const;
  /// Would it rewrite the chunk? `weight` is set in any case.
  Result<bool> executes(const log::Chunk& chunk, double& weight);

 private:
  Preview(const ScavengeParts& parts, FileSystem& scratch_files, Path directory,
          ScavengeOptions options);
  Result<void> open_state();
  Result<void> start_job(Stage last);
  Result<void> widen_last_range();

  ScavengeParts parts_;
  FileSystem& scratch_files_;
  Path directory_;
  ScavengeOptions options_;
  std::optional<Checkpoint> checkpoint_;
  ScavengePoint point_;
  std::unique_ptr<ScavengeState> state_;
  ScavengeEvents events_;
  std::unique_ptr<ScavengeJob> job_;
  Stage last_stage_ = Stage::kAccumulating;
  ScavengeProgress progress_;
  bool stop_ = false;
  bool done_ = false;
};

}  // namespace verger::scavenge
