#include "nodeagent/operations/digests.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>

#include "engine/base/digest.h"

namespace verger::agent {
namespace {

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

/// One digest, under way, stopped or finished. `basis` shows when it is out of date.
struct Digests::Work {
  DigestQuery query;
  std::int64_t position = 0;
  std::string basis;
  std::shared_ptr<node::DigestWork> job;  ///< until it has finished
  std::atomic<bool> in_use = false;       ///< one job at a time steps it
  bool finished = false;
  bool failed = false;  ///< must not be stepped again
  Monotonic used_at{};
  api::Digest digest;
};

/// One life of the work, from where it stands.
class Digests::WorkJob final : public DigestJob {
 public:
  explicit WorkJob(std::shared_ptr<Work> work) : work_(std::move(work)) { work_->in_use = true; }
  ~WorkJob() override { work_->in_use = false; }
  WorkJob(const WorkJob&) = delete;
  WorkJob& operator=(const WorkJob&) = delete;

  Result<StepOutcome> step(Budget budget) override {
    if (work_->finished) {
      return StepOutcome{.kind = StepOutcome::Kind::kDone};
    }
    auto outcome = work_->job->step(budget);
    if (!outcome) {
      work_->failed = true;
      return outcome.error();
    }
    if (outcome->kind == StepOutcome::Kind::kDone) {
      finish();
    }
    return outcome;
  }

  [[nodiscard]] JobProgress progress() const override {
    const auto done = work_->finished ? work_->position : work_->job->position().value();
    const auto total = work_->finished ? work_->position : work_->job->end().value();
    return {
        .phase = "reading the log", .done = done, .total = total, .unit = "bytes", .bytes = done};
  }
  [[nodiscard]] const api::Digest& digest() const override { return work_->digest; }
  [[nodiscard]] const std::shared_ptr<Work>& work() const { return work_; }

 private:
  void finish() {
    const auto& seen = work_->job->digest();
    auto& digest = work_->digest;
    digest.logical = to_hex(seen.logical);
    digest.readable = work_->query.readable ? to_hex(seen.readable) : std::string();
    for (const auto& chunk : seen.chunks) {
      digest.chunks.push_back(to_hex(chunk));
    }
    digest.records = static_cast<std::int64_t>(seen.records);
    digest.readable_events =
        work_->query.readable ? static_cast<std::int64_t>(seen.readable_events) : -1;
    work_->job = nullptr;
    work_->finished = true;
  }

  std::shared_ptr<Work> work_;
};

/// What a controller of the version before asked for.
struct Digests::Asked {
  std::shared_ptr<WorkJob> job;  ///< while it runs
  std::shared_ptr<JobControl> control;
  DigestQuery query;
  std::string basis;
  std::optional<Error> failure;
  Monotonic failed_at{};
};

Result<std::shared_ptr<DigestJob>> Digests::job(node::NodeInspection& node,
                                                const DigestQuery& query) {
  if (work_ && work_->in_use) {
    return Error{Errc::kRefused,
                 fmt::format("the digest up to point {} is being computed; ask again when it is "
                             "done",
                             work_->query.point)};
  }
  const bool same = work_ && !work_->failed && work_->query.point == query.point &&
                    (work_->query.readable || !query.readable) &&
                    work_->basis == basis_of(node, work_->position);
  if (!same) {
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
    streams::DigestOptions options;
    options.readable = query.readable;
    options.files = &files_;
    options.temporary_directory = directory_;
    VERGER_TRY(work->job, node.make_digest_job(query.point, options));
    work_ = std::move(work);
  }
  work_->used_at = clock_.monotonic();
  return std::make_shared<WorkJob>(work_);
}

void Digests::forget(std::int64_t point) {
  if (work_ && work_->query.point == point && !work_->in_use) {
    work_ = nullptr;
  }
}

void Digests::forget_old() {
  if (work_ && !work_->in_use && !work_->finished &&
      clock_.monotonic() - work_->used_at > kKeptFor) {
    work_ = nullptr;
  }
}

Result<api::DigestAnswer> Digests::ask(node::NodeInspection& node, const DigestQuery& query) {
  const auto covers = [&](const DigestQuery& other) {
    return other.point == query.point && (other.readable || !query.readable);
  };
  if (asked_ && asked_->job && covers(asked_->query) &&
      asked_->basis == basis_of(node, asked_->job->work()->position)) {
    asked_->control->touch();
    const auto progress = asked_->control->progress();
    return api::DigestAnswer{.digest = {},
                             .bytes_done = std::max<std::int64_t>(progress.done, 0),
                             .bytes_total = std::max<std::int64_t>(progress.total, 0)};
  }
  if (asked_ && asked_->failure && covers(asked_->query) &&
      clock_.monotonic() - asked_->failed_at <= kRetriedAfter) {
    return *asked_->failure;
  }
  if (asked_ && asked_->job && asked_->query.point == query.point) {
    asked_->control->cancel(/*keep=*/false);  // it is out of date; the next request begins anew
    return api::DigestAnswer{};
  }
  VERGER_TRY(auto job, this->job(node, query));
  if (work_->finished) {
    return api::DigestAnswer{.digest = job->digest()};
  }
  asked_ = std::make_shared<Asked>();
  asked_->job = std::static_pointer_cast<WorkJob>(std::move(job));
  asked_->control =
      std::make_shared<JobControl>(clock_, api::Throttle{.percent = query.throttle_percent});
  asked_->control->report(asked_->job->progress());
  asked_->query = query;
  asked_->basis = work_->basis;
  tasks_.spawn(compute(
      asked_,
      std::make_shared<PacedJob>(asked_->job, asked_->control, clock_, PacedJob::Lease::kOfQueries),
      jobs_, clock_));
  const auto progress = asked_->control->progress();
  return api::DigestAnswer{.digest = {},
                           .bytes_done = std::max<std::int64_t>(progress.done, 0),
                           .bytes_total = std::max<std::int64_t>(progress.total, 0)};
}

net::awaitable<void> Digests::compute(std::shared_ptr<Asked> asked, std::shared_ptr<PacedJob> paced,
                                      node::JobRunner& jobs, Clock& clock) {
  auto outcome = co_await jobs.run(paced, asked->control->stop_flag());
  if (!outcome && outcome.error().code != Errc::kCancelled) {
    asked->failure = outcome.error();
    asked->failed_at = clock.monotonic();
  }
  asked->job = nullptr;
}

void Digests::stop(std::int64_t point, bool keep) {
  if (asked_ && asked_->query.point == point) {
    stop();
    asked_->query.point = -1;  // what failed may be tried again
  }
  if (!keep && work_ && work_->query.point == point && !(work_->in_use && !asked_)) {
    work_ = nullptr;  // its job keeps it until it has stopped
  }
}

void Digests::stop() {
  if (asked_ && asked_->job) {
    asked_->control->suspend();
  }
}

}  // namespace verger::agent
