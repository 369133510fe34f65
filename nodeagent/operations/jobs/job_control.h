#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/base/clock.h"
#include "nodeagent/api/agent_jobs.h"
#include "nodeagent/node/job_runner.h"

namespace verger::agent {

/// The parameters of each kind that has a job: how gently it begins (api::Throttle).
inline constexpr std::string_view kThrottleParameter = "throttlePercent";
inline constexpr std::string_view kBytesParameter = "bytesPerSecond";

/// How far a job is, as its own thread knows it. -1 and an empty text: not known.
struct JobProgress {
  std::string phase{};
  std::int64_t done = -1;
  std::int64_t total = -1;
  std::string unit{};
  std::int64_t bytes = -1;
};

/// What a running job and its agent tell each other: how gently it is to work, whether it is to
/// stop, and how far it is. Safe from any thread.
class JobControl {
 public:
  explicit JobControl(Clock& clock, api::Throttle throttle = {});

  // The agent's side.

  /// For good. With `keep`, what it has in memory is kept for the next operation of its kind.
  void cancel(bool keep);
  /// The agent ends: the job stops between two steps, and resumes with the next agent.
  void suspend() { stop_->request(); }
  [[nodiscard]] bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool keeps() const { return keeps_.load(std::memory_order_relaxed); }
  void set_throttle(api::Throttle throttle);
  /// A controller has queried the job.
  void touch();
  /// How long no controller has.
  [[nodiscard]] std::chrono::nanoseconds unqueried() const;
  /// With an empty phase: nothing is known.
  [[nodiscard]] api::OperationProgress progress() const;

  // The job's side.

  [[nodiscard]] std::shared_ptr<const node::StopFlag> stop_flag() const { return stop_; }
  [[nodiscard]] bool stopping() const { return stop_->requested(); }
  [[nodiscard]] api::Throttle throttle() const;
  /// Another phase than before, or less done, begins a new phase: its rate counts from now on.
  void report(JobProgress progress);

 private:
  Clock& clock_;
  std::shared_ptr<node::StopFlag> stop_ = std::make_shared<node::StopFlag>();
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> keeps_ = false;
  std::atomic<std::int64_t> queried_at_;  ///< monotonic nanoseconds
  mutable std::mutex guard_;              ///< of all below
  api::Throttle throttle_;
  JobProgress progress_;
  std::int64_t first_done_ = 0;  ///< when the phase began
  Ticks since_{};
  Monotonic began_{};
};

}  // namespace verger::agent
