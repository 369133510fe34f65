#pragma once

#include <memory>

#include "engine/online/prepared_chunks.h"
#include "engine/online/shadow.h"
#include "engine/scavenge/options.h"
#include "engine/scavenge/parallel_runner.h"
#include "engine/scavenge/types.h"

namespace verger::online_scavenge {

struct NativeRunOptions {
  int threads = 1;                 ///< 1 to 4
  scavenge::StateOptions state{};  ///< of a scavenging.db that does not exist yet
  index::HashFunction hash = &index::hash_stream;
  std::uint64_t max_mem_table_size = 1'000'000;
  bool hash_in_background = false;  ///< as of ScavengeOptions
};

/// Scavenges the shadow up to a point, or resumes what the server left unfinished, until chunks are
/// executed and before any are merged. Then the state in the shadow stands at MergingChunks, and
/// the preparation is stored. A point that is reached, or of which the server has only to merge and
/// the rest, leaves a preparation without chunks: stage() says which.
///
/// Errors: those of ScavengeJob and of opening the log; kCancelled after request_stop(). One thread
/// steps it.
class NativeRunJob final : public Job {
 public:
  /// `point` is in the log. `runner`: null: in the thread that steps it.
  NativeRunJob(const Machine& machine, DatabasePlace place, const streams::ScavengePoint& point,
               NativeRunOptions options,
               std::unique_ptr<scavenge::ParallelRunner> runner = nullptr);
  ~NativeRunJob() override;
  Result<StepOutcome> step(Budget budget) override;
  void request_stop();

  [[nodiscard]] WorkProgress progress() const;
  /// Once it is done: what is in the shadow's prepared.json.
  [[nodiscard]] const Preparation& preparation() const;
  /// Once it is done: where the state in the shadow stands; kDone: the point was reached before.
  [[nodiscard]] scavenge::Stage stage() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::online_scavenge
