#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/base/clock.h"
#include "engine/base/job.h"
#include "engine/scavenge/estimate.h"
#include "engine/scavenge/preview.h"
#include "nodeagent/external/database_look.h"

namespace verger::agent {

/// What a scavenge would remove that is begun now, counted in the files of a node that may run:
/// read only, at half speed, and for half a minute at most. What it reads is the log since the last
/// scavenge, the streams with limits, and the chunks that would be rewritten.
class EstimateRunningJob final : public Job {
 public:
  struct Wanted {
    std::int32_t threshold = 0;
    /// Bytes to go with which it ends: more need not be counted.
    std::int64_t enough = 0;
  };
  /// `scratch` gets a copy of the node's scavenging.db; what an earlier one has left there goes.
  EstimateRunningJob(external::DatabaseReading reading, Path scratch, Wanted wanted);
  ~EstimateRunningJob() override;
  /// Errors: kTimeout: it takes longer; kUnavailable: a scavenge is unfinished, or its state too
  /// large to be copied; those of reading.
  Result<StepOutcome> step(Budget budget) override;

  // once it is done
  [[nodiscard]] scavenge::Volume removed() const { return removed_; }
  [[nodiscard]] bool at_least() const { return at_least_; }
  [[nodiscard]] std::int64_t seconds() const { return seconds_; }

 private:
  /// True once it is counted.
  Result<bool> work(Budget budget);
  Result<void> open();

  external::DatabaseReading reading_;
  Path scratch_;
  Wanted wanted_;
  std::optional<Monotonic> began_;
  std::unique_ptr<streams::Database> database_;
  std::unique_ptr<scavenge::Preview> preview_;
  std::unique_ptr<scavenge::EstimateJob> count_;
  scavenge::Volume removed_;
  bool at_least_ = false;
  std::int64_t seconds_ = 0;
};

}  // namespace verger::agent
