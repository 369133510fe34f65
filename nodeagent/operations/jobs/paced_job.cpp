#include "nodeagent/operations/jobs/paced_job.h"

#include <algorithm>
#include <utility>

namespace verger::agent {
namespace {

using std::chrono::milliseconds;

/// Controllers query every second or so.
constexpr std::chrono::seconds kLease{60};
/// Longer than the windows of a day are closed.
constexpr std::chrono::hours kAbandonedAfter{30};
constexpr milliseconds kShortestRest{50};
constexpr milliseconds kLongestRest{1'000};

}  // namespace

PacedJob::PacedJob(std::shared_ptr<MeteredJob> job, std::shared_ptr<JobControl> control,
                   Clock& clock, Lease lease)
    : job_(std::move(job)), control_(std::move(control)), clock_(clock), lease_(lease) {}

Result<StepOutcome> PacedJob::step(Budget budget) {
  const auto now = clock_.monotonic();
  if (resting_since_) {
    rested_ += now - *resting_since_;
    resting_since_.reset();
  }
  if (lease_ == Lease::kOfQueries) {
    const auto unqueried = control_->unqueried();
    if (unqueried > kAbandonedAfter) {
      return Error{Errc::kTimeout, "no controller has queried it for more than a day"};
    }
    if (unqueried > kLease) {
      counting_ = false;  // this rest pays for nothing
      return StepOutcome{.kind = StepOutcome::Kind::kRest, .rest = kLongestRest};
    }
  }
  if (const auto rest = rest_due(now, job_->progress().bytes); rest > milliseconds(0)) {
    resting_since_ = now;
    return StepOutcome{.kind = StepOutcome::Kind::kRest, .rest = rest};
  }
  if (throttle_.bytes_per_second > 0) {
    // A unit is a record or so: no step reads much more than it may within a second.
    constexpr std::int64_t kBytesPerUnit = 1'024;
    budget.units = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(throttle_.bytes_per_second / kBytesPerUnit, 1, budget.units));
  }
  auto outcome = job_->step(budget);
  if (outcome) {
    control_->report(job_->progress());
  }
  return outcome;
}

milliseconds PacedJob::rest_due(Monotonic now, std::int64_t bytes) {
  using Seconds = std::chrono::duration<double>;
  const auto wanted = control_->throttle();
  if (!counting_ || wanted != throttle_) {
    counting_ = true;
    throttle_ = wanted;
    since_ = now;
    first_bytes_ = std::max<std::int64_t>(bytes, 0);
    rested_ = {};
  }
  const Seconds elapsed = now - since_;
  const Seconds rested = rested_;
  auto due = (elapsed - rested) * ((100.0 - wanted.percent) / wanted.percent) - rested;
  if (wanted.bytes_per_second > 0 && bytes > first_bytes_) {
    const Seconds allowed(static_cast<double>(bytes - first_bytes_) /
                          static_cast<double>(wanted.bytes_per_second));
    due = std::max(due, allowed - elapsed);
  }
  return due < kShortestRest
             ? milliseconds(0)
             : std::chrono::duration_cast<milliseconds>(std::min<Seconds>(due, kLongestRest));
}

}  // namespace verger::agent
