#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/base/job.h"
#include "nodeagent/operations/jobs/job_control.h"

namespace verger::agent {

/// Long work on a node's files that tells how far it is.
class MeteredJob : public Job {
 public:
  /// For the stepping thread.
  [[nodiscard]] virtual JobProgress progress() const = 0;
};

/// Drives a job as its JobControl says: reports its progress, rests for its throttle, which may
/// change at any time, and, with a lease, while no controller has queried it for a minute: where
/// the controller is gone the disk is left in peace. Work that no controller queries for more than
/// a day ends with kTimeout. One life of a job: one that was stopped gets a new PacedJob.
class PacedJob final : public Job {
 public:
  enum class Lease : std::uint8_t {
    kNone,       ///< it has to come to its end
    kOfQueries,  ///< it rests while no controller queries it
  };
  PacedJob(std::shared_ptr<MeteredJob> job, std::shared_ptr<JobControl> control, Clock& clock,
           Lease lease);
  Result<StepOutcome> step(Budget budget) override;

 private:
  /// What is due before the next step; at most a piece of it at a time, so that a change of the
  /// throttle counts at once.
  std::chrono::milliseconds rest_due(Monotonic now, std::int64_t bytes);

  std::shared_ptr<MeteredJob> job_;
  std::shared_ptr<JobControl> control_;
  Clock& clock_;
  Lease lease_;
  // What it rests for is reckoned from the moment at which its throttle was set.
  bool counting_ = false;
  api::Throttle throttle_;
  Monotonic since_{};
  std::int64_t first_bytes_ = 0;
  std::chrono::nanoseconds rested_{0};  ///< since then
  std::optional<Monotonic> resting_since_{};
};

}  // namespace verger::agent
