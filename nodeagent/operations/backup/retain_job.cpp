#include "nodeagent/operations/backup/retain_job.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/backup/retention.h"

namespace verger::agent {
namespace {

constexpr std::int64_t kTicksPerDay = kTicksPerSecond * 3'600 * 24;
/// Manifests read in one step.
constexpr std::size_t kManifestsAtOnce = 8;

backup::KeepRules rules_of(const api::BackupRetainParameters& parameters) {
  return {.last = parameters.keep_last,
          .daily = parameters.keep_daily,
          .weekly = parameters.keep_weekly,
          .monthly = parameters.keep_monthly,
          .within_days = parameters.keep_within_days};
}

}  // namespace

Result<api::BackupRetainParameters> retain_parameters_of(std::string_view parameters_json) {
  VERGER_TRY(auto out, api::parse_backup_parameters<api::BackupRetainParameters>(parameters_json));
  const auto wrong = [](std::string text) {
    return Error{Errc::kInvalidArgument, "parameters: " + std::move(text)};
  };
  if (!is_repository_name(out.repository)) {
    return wrong("repository must be the name of one of the agent's repositories");
  }
  const auto rules = rules_of(out);
  if (std::min({rules.last, rules.daily, rules.weekly, rules.monthly, rules.within_days}) < 0) {
    return wrong("a rule is the number of backups or days it keeps, 0 or more");
  }
  if (rules.any() && !out.generations.empty()) {
    return wrong("generations and rules are not given together");
  }
  for (const auto& id : out.generations) {
    if (!backup::is_generation_id(id)) {
      return wrong(fmt::format("generations: \"{}\" is not the id of a backup", id));
    }
  }
  return out;
}

RetainJob::RetainJob(std::shared_ptr<const Repositories> repositories,
                     api::BackupRetainParameters parameters)
    : repositories_(std::move(repositories)), parameters_(std::move(parameters)) {}

Result<StepOutcome> RetainJob::step(Budget /*budget*/) {
  VERGER_RETURN_IF_ERROR(look());
  return StepOutcome{.kind = phase_ == Phase::kDone ? StepOutcome::Kind::kDone
                                                    : StepOutcome::Kind::kMore};
}

Result<void> RetainJob::look() {
  switch (phase_) {
    case Phase::kOpen:
      return open();
    case Phase::kManifests:
      return read_some();
    case Phase::kMark:
      return mark_next();
    case Phase::kSweep:
      VERGER_RETURN_IF_ERROR(sweep());
      phase_ = Phase::kDone;
      return {};
    case Phase::kDone:
      break;
  }
  return {};
}

Result<void> RetainJob::open() {
  VERGER_TRY(opened_, repositories_->open(parameters_.repository, parameters_.repository_id));
  if (rules_of(parameters_).any()) {
    VERGER_TRY(unread_, opened_->repository.generation_ids());
    phase_ = Phase::kManifests;
    return {};
  }
  condemned_ = parameters_.generations;
  std::ranges::reverse(condemned_);
  phase_ = Phase::kMark;
  return {};
}

Result<void> RetainJob::read_some() {
  for (std::size_t i = 0; i < kManifestsAtOnce && !unread_.empty(); ++i) {
    const auto id = std::move(unread_.back());
    unread_.pop_back();
    auto manifest = opened_->repository.load(id);
    if (!manifest &&
        (manifest.error().code == Errc::kCorruption ||
         manifest.error().code == Errc::kUnsupported || manifest.error().code == Errc::kNotFound)) {
      continue;  // no rule deletes what cannot be read
    }
    if (!manifest) {
      return std::move(manifest).error();
    }
    if (parameters_.node.empty() || manifest->source.node == parameters_.node) {
      manifest->files.clear();
      manifests_.push_back(*std::move(manifest));
    }
  }
  return unread_.empty() ? decide() : Result<void>();
}

Result<void> RetainJob::decide() {
  const auto decisions = backup::decide_retention(manifests_, rules_of(parameters_),
                                                  repositories_->access().clock.now());
  for (const auto& decision : decisions) {
    if (decision.kept_by.empty()) {
      condemned_.push_back(decision.id);
    }
  }
  std::ranges::sort(condemned_, std::greater());
  manifests_.clear();
  phase_ = Phase::kMark;
  return {};
}

Result<void> RetainJob::mark_next() {
  if (condemned_.empty()) {
    phase_ = Phase::kSweep;
    return {};
  }
  auto id = std::move(condemned_.back());
  condemned_.pop_back();
  const auto marked = opened_->repository.mark_deleted(id, repositories_->access().clock.now());
  // It may have been deleted before the agent was restarted.
  if (!marked && marked.error().code != Errc::kNotFound) {
    return marked.error();
  }
  if (marked) {
    repositories_->access().log.info("a backup was deleted",
                                     {{"repository", opened_->name}, {"backup", id}});
    result_.deleted.push_back(std::move(id));
  }
  return {};
}

Result<void> RetainJob::sweep() {
  const auto now = repositories_->access().clock.now().value();
  const auto swept =
      opened_->repository.sweep(Ticks(now - kTicksPerDay), Ticks(now - kTicksPerDay));
  if (!swept &&
      (swept.error().code == Errc::kUnavailable || swept.error().code == Errc::kCorruption)) {
    result_.postponed = swept.error().message;
    return {};
  }
  if (!swept) {
    return swept.error();
  }
  result_.blobs = static_cast<std::int64_t>(swept->blobs);
  result_.bytes = static_cast<std::int64_t>(swept->bytes);
  return {};
}

JobProgress RetainJob::progress() const {
  switch (phase_) {
    case Phase::kOpen:
      return {.phase = "opening the repository"};
    case Phase::kManifests:
      return {.phase = "reading the manifests"};
    case Phase::kMark:
      return {.phase = "deleting backups",
              .done = static_cast<std::int64_t>(result_.deleted.size()),
              .total = static_cast<std::int64_t>(result_.deleted.size() + condemned_.size()),
              .unit = "backups"};
    case Phase::kSweep:
    case Phase::kDone:
      break;
  }
  return {.phase = "removing content that no backup needs"};
}

}  // namespace verger::agent
