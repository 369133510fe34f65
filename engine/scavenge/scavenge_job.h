#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "engine/base/job.h"
#include "engine/scavenge/context.h"
#include "engine/scavenge/events.h"
#include "engine/scavenge/options.h"
#include "engine/scavenge/parallel_runner.h"
#include "engine/scavenge/scavenge_state.h"
#include "engine/scavenge/start_decision.h"

namespace verger::scavenge {

/// kUnsupported where an index table has 32-bit hashes (version 1), which no scavenge can work on.
Result<void> check_table_versions(const index::Index& index);

/// Scavenges one point, from where the state stands to the checkpoint "Done", or to the one behind
/// ScavengeOptions::last_stage.
///
/// step() ends with kDone or with an error: kCancelled after request_stop(), kRefused (another
/// point is unfinished, or this one is reached), kUnsupported (records the server fails on, version
/// 1 index tables), kCorruption, kIo, kNoSpace. After an error, and when it is destroyed early,
/// what is on disk can be resumed by a new job, with other options. One thread steps it;
/// request_stop() and progress_stage() are safe from any thread.
class ScavengeJob final : public Job {
 public:
  /// `point` is in the log, the last record of a completed chunk. `events` and `runner` outlive the
  /// job.
  ScavengeJob(const ScavengeParts& parts, std::unique_ptr<ScavengeState> state,
              const ScavengePoint& point, ScavengeOptions options, ScavengeEvents& events,
              ParallelRunner& runner = inline_runner());
  ~ScavengeJob() override;

  Result<StepOutcome> step(Budget budget) override;

  /// The run ends with kCancelled at the next place where it may: within some thousand records.
  void request_stop() { stop_.store(true, std::memory_order_relaxed); }
  /// Setting it is the same; also from a signal handler.
  std::atomic<bool>& stop_flag() { return stop_; }
  Stage progress_stage() const { return stage_shown_.load(std::memory_order_relaxed); }

  /// For the stepping thread.
  const ScavengeProgress& progress() const { return progress_; }
  const ScavengePoint& point() const { return context_.point; }
  /// Once step() has ended with kDone or with an error: until then a stage may be using it in a
  /// thread of its own.
  const ScavengeState& state() const { return *state_; }

 private:
  Result<void> start();
  Result<void> check_point_record();
  Result<void> enter(Stage stage, std::optional<std::int32_t> done_chunk,
                     std::optional<StreamHandle> done_stream, bool write_checkpoint);
  Result<void> next_stage();
  [[nodiscard]] bool is_over() const;
  void report_collisions();

  std::unique_ptr<ScavengeState> state_;
  ScavengeOptions options_;
  ParallelRunner& runner_;
  std::atomic<bool> stop_{false};
  std::atomic<Stage> stage_shown_{Stage::kAccumulating};
  Throttle throttle_;
  ScavengeProgress progress_;
  RunContext context_;
  bool started_ = false;
  std::unique_ptr<StageTask> task_;
};

}  // namespace verger::scavenge
