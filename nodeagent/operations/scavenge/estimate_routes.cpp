#include "nodeagent/operations/scavenge/estimate_routes.h"

#include <utility>

#include "engine/base/number_from_text.h"
#include "engine/base/random.h"
#include "nodeagent/operations/answers.h"
#include "nodeagent/operations/scavenge/estimate_job.h"

namespace verger::agent {
namespace {

/// A plan is often made again at once. What failed would fail again, and takes its time.
constexpr std::chrono::minutes kEstimateKept{10};
/// Without a limit of its own a count ends here.
constexpr std::string_view kEnoughForAll = "1099511627776";

/// The job's chance is in names of temporary files alone.
class SeededEstimate final : public Job {
 public:
  SeededEstimate(FileSystem& files, external::DatabasePlace place, Clock& clock, Log& log,
                 Path scratch, EstimateRunningJob::Wanted wanted)
      : random_(static_cast<std::uint64_t>(clock.now().value())),
        job_({files, std::move(place), clock, random_, log}, std::move(scratch), wanted) {}
  Result<StepOutcome> step(Budget budget) override { return job_.step(budget); }
  [[nodiscard]] const EstimateRunningJob& job() const { return job_; }

 private:
  SeededRandom random_;
  EstimateRunningJob job_;
};

net::awaitable<http::Response> answer_estimate(ScavengeEstimates::Self estimates,
                                               http::RoutedRequest request) {
  const auto threshold =
      number_from_text<std::int32_t>(request.target.parameter("threshold").value_or("0"));
  const auto enough =
      number_from_text<std::int64_t>(request.target.parameter("enough").value_or(kEnoughForAll));
  if (!threshold || *threshold < -1 || !enough || *enough < 1) {
    co_return problem(400, "bad_request",
                      "threshold must be -1 or more, enough a number of bytes, 1 or more");
  }
  const auto estimate = co_await ScavengeEstimates::ask(
      std::move(estimates), {.threshold = *threshold, .enough = *enough});
  co_return estimate ? json_text_answer(200, api::to_text(*estimate))
                     : problem(503, "unavailable", estimate.error().message);
}

}  // namespace

net::awaitable<Result<api::ScavengeEstimate>> ScavengeEstimates::ask(Self self, Question question) {
  const auto& environment = self->environment_;
  auto* node = self->flag_->requested() ? nullptr : environment.inspection();
  if (node == nullptr) {
    co_return Error{Errc::kUnavailable, "the node is stopped"};
  }
  if (node->running_scavenge()) {
    co_return Error{Errc::kUnavailable, "a scavenge of it runs"};
  }
  const auto instance = node->instance_id();
  if (self->known_ && self->known_->question == question && self->known_->instance == instance &&
      environment.clock.monotonic() - self->known_->at <= kEstimateKept) {
    co_return self->known_->answer;
  }
  if (self->is_counting_) {
    co_return Error{Errc::kUnavailable, "it is being counted for another plan"};
  }
  self->is_counting_ = true;
  const auto job = std::make_shared<SeededEstimate>(
      environment.files,
      external::DatabasePlace{.database = node->database_directory(),
                              .index = node->index_directory()},
      environment.clock, environment.log, environment.scratch,
      EstimateRunningJob::Wanted{.threshold = question.threshold, .enough = question.enough});
  const auto counted = co_await environment.jobs.run(job, self->flag_);
  self->is_counting_ = false;
  Result<api::ScavengeEstimate> answer = Error{Errc::kUnavailable, ""};
  if (counted) {
    const auto removed = job->job().removed();
    answer = api::ScavengeEstimate{.removed_bytes = static_cast<std::int64_t>(removed.bytes),
                                   .removed_records = static_cast<std::int64_t>(removed.records),
                                   .at_least = job->job().at_least(),
                                   .seconds = job->job().seconds()};
  } else {
    answer = counted.error();
  }
  self->known_ = Known{.question = question,
                       .instance = instance,
                       .at = environment.clock.monotonic(),
                       .answer = answer};
  co_return answer;
}

void add_estimate_routes(http::Router& router, ScavengeEstimates::Self estimates) {
  router.add("GET", "/agent/v1/scavenge/estimate",
             [estimates = std::move(estimates)](http::RoutedRequest request) {
               return answer_estimate(estimates, std::move(request));
             });
}

}  // namespace verger::agent
