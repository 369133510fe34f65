#include "nodeagent/operations/restore/restore_work.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::agent {
namespace {

std::string text_of_phase(std::string_view phase) {
  if (phase == "copy") {
    return "copying";
  }
  if (phase == "switch") {
    return "replacing the files";
  }
  return phase == "verify" ? "verifying" : "opening the backup";
}

}  // namespace

Result<RestoreSource> open_restore_source(const Repositories& repositories,
                                          const api::BackupTarget& target,
                                          std::string_view generation) {
  VERGER_TRY(auto repository, repositories.open(target.repository, target.repository_id));
  VERGER_TRY(auto manifest, repository->repository.load(generation));
  return RestoreSource{.repository = std::move(repository), .manifest = std::move(manifest)};
}

RestoreWork::RestoreWork(std::shared_ptr<const Repositories> repositories, api::BackupTarget from,
                         std::string generation, Target target, FileSystem& files)
    : repositories_(std::move(repositories)),
      from_(std::move(from)),
      generation_(std::move(generation)),
      target_(std::move(target)),
      files_(files) {}

Result<void> RestoreWork::open() {
  VERGER_TRY(source_, open_restore_source(*repositories_, from_, generation_));
  const auto& source = source_->manifest.source;
  if (target_.same_directory && source.host == target_.host &&
      source.directory != target_.directory.string()) {
    return Error{Errc::kConflict,
                 fmt::format("backup {} is of {} on this machine, not of {}: it is another node's",
                             generation_, source.directory, target_.directory.string())};
  }
  backup::RestoreOptions options;
  options.directory = target_.directory;
  options.index_directory = target_.index_directory;
  options.keep_old = target_.keep_old;
  options.lanes = target_.threads;
  options.index_from = target_.index_from;
  runner_ = scavenge::make_thread_runner(static_cast<int>(target_.threads));
  const auto& access = repositories_->access();
  job_ = std::make_unique<backup::RestoreJob>(files_, *source_->repository->store,
                                              source_->manifest, std::move(options), access.clock,
                                              access.random, access.log, *runner_);
  return {};
}

Result<StepOutcome> RestoreWork::step(Budget budget) {
  if (!job_) {
    VERGER_RETURN_IF_ERROR(open());
    return StepOutcome{.kind = StepOutcome::Kind::kMore};
  }
  if (job_->is_in_place() && !may_finish_) {
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  if (job_->replaces_files()) {
    replaces_files_ = true;
  }
  auto outcome = job_->step(budget);
  const auto& now = job_->progress();
  if (phase_ != now.phase) {
    phase_ = now.phase;
    earlier_bytes_ += phase_bytes_;
    // What an interrupted restore had copied was not copied now.
    phase_began_at_ = now.done;
  }
  phase_bytes_ = static_cast<std::int64_t>(now.done - phase_began_at_);
  if (job_->replaces_files()) {
    replaces_files_ = true;
  }
  return outcome;
}

JobProgress RestoreWork::progress() const {
  if (!job_) {
    return {.phase = text_of_phase({})};
  }
  const auto& now = job_->progress();
  const bool counts = now.total > 0;
  return {.phase = text_of_phase(now.phase),
          .done = counts ? static_cast<std::int64_t>(now.done) : -1,
          .total = counts ? static_cast<std::int64_t>(now.total) : -1,
          .unit = counts ? "bytes" : "",
          .bytes = earlier_bytes_ + phase_bytes_};
}

}  // namespace verger::agent
