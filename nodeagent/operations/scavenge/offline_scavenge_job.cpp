#include "nodeagent/operations/scavenge/offline_scavenge_job.h"

#include <algorithm>

namespace verger::agent {

OfflineScavengeJob::OfflineScavengeJob(external::OfflineServer& server, std::int64_t point,
                                       std::int32_t threads)
    : server_(server), point_(point), threads_(std::clamp(threads, 1, 4)) {}

Result<StepOutcome> OfflineScavengeJob::step(Budget budget) {
  if (job_ == nullptr) {
    VERGER_TRY(const bool is_needed, begin());
    return StepOutcome{.kind = is_needed ? StepOutcome::Kind::kMore : StepOutcome::Kind::kDone};
  }
  return job_->step(budget);
}

JobProgress OfflineScavengeJob::progress() const {
  if (job_ == nullptr) {
    return {.phase = "opening the database"};
  }
  const auto& seen = job_->progress();
  const auto unit = [&]() -> std::string {
    switch (seen.stage) {
      case scavenge::Stage::kAccumulating:
        return "chunks";
      case scavenge::Stage::kCalculating:
        return "streams";
      case scavenge::Stage::kExecutingChunks:
      case scavenge::Stage::kMergingChunks:
        return "bytes";
      case scavenge::Stage::kExecutingIndex:
        return "tables";
      case scavenge::Stage::kCleaning:
      case scavenge::Stage::kDone:
        break;
    }
    return {};
  }();
  return {.phase = std::string(scavenge::to_string(seen.stage)),
          .done = unit.empty() ? -1 : static_cast<std::int64_t>(seen.done),
          .total = seen.total > 0 ? static_cast<std::int64_t>(seen.total) : -1,
          .unit = unit};
}

std::int64_t OfflineScavengeJob::space_saved() const {
  return job_ == nullptr ? 0 : job_->progress().space_saved;
}

std::int64_t OfflineScavengeJob::records_removed() const {
  return job_ == nullptr ? 0 : static_cast<std::int64_t>(job_->progress().records_discarded);
}

Result<bool> OfflineScavengeJob::begin() {
  VERGER_TRY(database_, server_.open_database());
  const auto& machine = server_.machine();
  VERGER_TRY(run_, scavenge::ScavengeRun::open(*database_, {.files = machine.files,
                                                            .clock = machine.clock,
                                                            .random = machine.random,
                                                            .log = machine.log}));
  VERGER_TRY(const auto decision, run_->find_start_at(EventNumber(point_)));
  if (!decision.point) {
    return false;
  }
  scavenge::ScavengeOptions options;
  options.threads = threads_;
  job_ = &run_->begin(*decision.point, options, events_,
                      threads_ > 1 ? scavenge::make_thread_runner(threads_) : nullptr);
  machine.log.info("scavenging the stopped server's files",
                   {{"point", std::to_string(decision.point->number.value())}});
  return true;
}

}  // namespace verger::agent
