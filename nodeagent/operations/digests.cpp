#include "nodeagent/operations/digests.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>

#include "engine/base/digest.h"
#include "engine/scavenge/throttle.h"

namespace verger::agent {
namespace {

/// The controller queries every second or so; where it is gone, the disk is left in peace.
constexpr std::chrono::seconds kForgottenAfter{60};
/// Longer than the windows of a day are closed.
constexpr std::chrono::hours kKeptFor{30};
/// What failed reads the whole log again: not at each question.
constexpr std::chrono::minutes kRetriedAfter{4};

/// Changes with every restart of the node and every rewritten chunk below the position, and not by
/// what is appended.
std::string basis_of(const node::NodeInspection& node, std::int64_t position) {
  const auto chunks = node.chunks();
  const auto first_above = chunks.chunk_size > 0 ? position / chunks.chunk_size : 0;
  std::int64_t files = 0;
  std::int64_t bytes = 0;
  for (const auto& file : chunks.files) {
    if (file.start < first_above) {
      ++files;
      bytes += file.bytes;
    }
  }
  const auto point = node.last_finished_point();
  const auto running = node.running_scavenge();
  return fmt::format("{}/{}/{}/{}/{}", node.instance_id(), files, bytes, point ? point->number : -1,
                     running ? running->id : "");
}

}  // namespace

/// One digest, requested, under way, stopped or finished. `basis` shows when it is out of date.
struct Digests::Work {
  DigestQuery query;
  std::int64_t position = 0;
  std::string basis;
  std::shared_ptr<node::DigestWork> job;  ///< until it has finished
  std::shared_ptr<node::StopFlag> stop;
  bool running = false;
  bool finished = false;
  Result<void> outcome;
  Monotonic failed_at{};
  api::Digest digest;
  std::atomic<std::int64_t> asked_at{0};  ///< monotonic nanoseconds
  std::atomic<std::int64_t> done{0};
  std::atomic<std::int64_t> total{0};
};

/// The work's job, throttled; one life of it, since resting is reckoned from its beginning.
class Digests::GentleWork final : public Job {
 public:
  GentleWork(std::shared_ptr<Work> work, Clock& clock, int throttle_percent)
      : work_(std::move(work)), clock_(clock), throttle_(clock, throttle_percent) {}

  Result<StepOutcome> step(Budget budget) override {
    const auto idle =
        clock_.monotonic() - Monotonic(work_->asked_at.load(std::memory_order_relaxed));
    if (idle > kForgottenAfter) {
      return Error{Errc::kCancelled, "no request for it came for a minute"};
    }
    VERGER_TRY(const auto outcome, work_->job->step(budget));
    work_->done.store(work_->job->position().value(), std::memory_order_relaxed);
    work_->total.store(work_->job->end().value(), std::memory_order_relaxed);
    if (outcome.kind == StepOutcome::Kind::kMore) {
      if (const auto rest = throttle_.rest_due(); rest.count() > 0) {
        return StepOutcome{.kind = StepOutcome::Kind::kRest, .rest = rest};
      }
    }
    return outcome;
  }

 private:
  std::shared_ptr<Work> work_;
  Clock& clock_;
  scavenge::Throttle throttle_;
};

Result<api::DigestAnswer> Digests::ask(node::NodeInspection& node, const DigestQuery& query) {
  if (work_ && work_->finished && !work_->outcome &&
      clock_.monotonic() - work_->failed_at > kRetriedAfter) {
    work_ = nullptr;
  }
  const bool same = work_ && work_->query.point == query.point &&
                    (work_->query.readable || !query.readable) &&
                    work_->basis == basis_of(node, work_->position);
  if (!same && work_ && work_->running && work_->query.point != query.point) {
    return Error{
        Errc::kRefused,
        fmt::format("the digest up to point {} is being computed; ask again when it is done",
                    work_->query.point)};
  }
  if (same) {
    work_->asked_at = clock_.monotonic().count();
    if (work_->finished && !work_->outcome) {
      return work_->outcome.error();
    }
    if (!work_->finished && !work_->running) {
      resume(query.throttle_percent);
    }
    return answer();
  }
  stop();
  VERGER_TRY(const auto points, node.scavenge_points());
  auto work = std::make_shared<Work>();
  work->query = query;
  for (const auto& known : points) {
    if (known.number.value() == query.point) {
      work->digest.point_number = query.point;
      work->digest.point_position = known.position.value();
      work->position = known.position.value();
    }
  }
  work->basis = basis_of(node, work->position);
  work->asked_at = clock_.monotonic().count();
  streams::DigestOptions options;
  options.readable = query.readable;
  options.files = &files_;
  options.temporary_directory = directory_;
  VERGER_TRY(work->job, node.make_digest_job(query.point, options));
  work_ = std::move(work);
  resume(query.throttle_percent);
  return answer();
}

Result<api::DigestAnswer> Digests::answer() const {
  api::DigestAnswer out;
  out.bytes_done = work_->done.load(std::memory_order_relaxed);
  out.bytes_total = work_->total.load(std::memory_order_relaxed);
  if (work_->finished) {
    out.digest = work_->digest;
  }
  return out;
}

void Digests::resume(int throttle_percent) {
  work_->running = true;
  work_->stop = std::make_shared<node::StopFlag>();
  tasks_.spawn(
      compute(work_, std::make_shared<GentleWork>(work_, clock_, throttle_percent), jobs_, clock_));
}

void Digests::stop(std::int64_t point, bool keep) {
  if (work_ && work_->query.point == point) {
    stop();
    if (!keep) {
      work_ = nullptr;
    }
  }
}

void Digests::stop() {
  if (work_ && work_->running) {
    work_->stop->request();
  }
}

void Digests::forget_old() {
  if (work_ && !work_->running && !work_->finished &&
      clock_.monotonic() - Monotonic(work_->asked_at.load()) > kKeptFor) {
    work_ = nullptr;
  }
}

net::awaitable<void> Digests::compute(std::shared_ptr<Work> work, std::shared_ptr<GentleWork> job,
                                      node::JobRunner& jobs, Clock& clock) {
  auto outcome = co_await jobs.run(job, work->stop);
  work->running = false;
  if (!outcome && outcome.error().code == Errc::kCancelled) {
    co_return;  // between two steps: it can resume
  }
  work->outcome = std::move(outcome);
  if (work->outcome) {
    const auto& digest = work->job->digest();
    work->digest.logical = to_hex(digest.logical);
    work->digest.readable = work->query.readable ? to_hex(digest.readable) : std::string();
    for (const auto& chunk : digest.chunks) {
      work->digest.chunks.push_back(to_hex(chunk));
    }
    work->digest.records = static_cast<std::int64_t>(digest.records);
    work->digest.readable_events =
        work->query.readable ? static_cast<std::int64_t>(digest.readable_events) : -1;
  }
  work->failed_at = clock.monotonic();
  work->job = nullptr;
  work->finished = true;
}

}  // namespace verger::agent
