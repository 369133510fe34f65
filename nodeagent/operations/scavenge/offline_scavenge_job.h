#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/scavenge/scavenge_run.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/jobs/paced_job.h"

namespace verger::agent {

/// Scavenges a stopped server's files up to the point with this number, which is in the log, or
/// resumes an unfinished scavenge; nothing where the point is reached. Opens the database, works,
/// closes: it is open only while the job lives. Errors: kNotFound (no such point), the engine's.
class OfflineScavengeJob final : public MeteredJob {
 public:
  /// `server` outlives the job.
  OfflineScavengeJob(external::OfflineServer& server, std::int64_t point, std::int32_t threads);
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override;
  /// Since it was begun or resumed.
  [[nodiscard]] std::int64_t space_saved() const;
  [[nodiscard]] std::int64_t records_removed() const;

 private:
  Result<bool> begin();

  external::OfflineServer& server_;
  std::int64_t point_;
  std::int32_t threads_;
  scavenge::ScavengeEvents events_;
  std::unique_ptr<streams::Database> database_;
  std::unique_ptr<scavenge::ScavengeRun> run_;
  scavenge::ScavengeJob* job_ = nullptr;  ///< of run_, once it has begun
};

}  // namespace verger::agent
