#include "nodeagent/operations/jobs/job_control.h"

#include <algorithm>
#include <utility>

namespace verger::agent {

JobControl::JobControl(Clock& clock, api::Throttle throttle)
    : clock_(clock), queried_at_(clock.monotonic().count()), throttle_(throttle) {}

void JobControl::cancel(bool keep) {
  keeps_.store(keep, std::memory_order_relaxed);
  cancelled_.store(true, std::memory_order_relaxed);
  stop_->request();
}

void JobControl::set_throttle(api::Throttle throttle) {
  const std::scoped_lock lock(guard_);
  throttle_ = throttle;
}

api::Throttle JobControl::throttle() const {
  const std::scoped_lock lock(guard_);
  return throttle_;
}

void JobControl::touch() {
  queried_at_.store(clock_.monotonic().count(), std::memory_order_relaxed);
}

std::chrono::nanoseconds JobControl::unqueried() const {
  return clock_.monotonic() - Monotonic(queried_at_.load(std::memory_order_relaxed));
}

void JobControl::report(JobProgress progress) {
  const std::scoped_lock lock(guard_);
  if (progress.phase != progress_.phase || progress.done < progress_.done) {
    first_done_ = std::max<std::int64_t>(progress.done, 0);
    since_ = clock_.now();
    began_ = clock_.monotonic();
  }
  progress_ = std::move(progress);
}

api::OperationProgress JobControl::progress() const {
  constexpr std::int64_t kSecondsPerHour = 3'600;
  const std::scoped_lock lock(guard_);
  if (progress_.phase.empty()) {
    return {};
  }
  api::OperationProgress out{.phase = progress_.phase,
                             .done = progress_.done,
                             .total = progress_.total,
                             .unit = progress_.unit,
                             .bytes = progress_.bytes,
                             .since = format_ticks(since_)};
  const auto worked = std::chrono::duration<double>(clock_.monotonic() - began_).count();
  if (progress_.done > first_done_ && worked >= 1) {
    out.rate = static_cast<std::int64_t>(static_cast<double>(progress_.done - first_done_) /
                                         worked * kSecondsPerHour);
  }
  return out;
}

}  // namespace verger::agent
