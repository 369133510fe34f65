#include "nodeagent/operations/backup/repository_copy.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "engine/scavenge/scavenge_state.h"
#include "nodeagent/operations/backup/catalogue_jobs.h"

namespace verger::agent {
namespace {

using std::chrono::milliseconds;

constexpr std::int32_t kMostCopyThreads = 8;
/// A megabyte for each file that is copied, about.
constexpr std::uint32_t kLeastUnits = 4'096;
/// A step that takes longer is followed by a smaller one: it is stopped between two.
constexpr milliseconds kLongStep{300};
constexpr milliseconds kShortStep{100};

std::optional<backup::WantedDigests> digests_of(std::string_view text) {
  if (text == "none") {
    return backup::WantedDigests::kNone;
  }
  if (text == "logical") {
    return backup::WantedDigests::kLogical;
  }
  return text == "readable" ? std::optional(backup::WantedDigests::kReadable) : std::nullopt;
}

/// As people read it.
std::string phase_text(std::string_view phase) {
  if (phase == "compare") {
    return "comparing with the node's files";
  }
  return phase == "digests" ? std::string("computing the digests")
                            : fmt::format("copying the {}", phase);
}

}  // namespace

Result<api::BackupParameters> backup_parameters_of(std::string_view parameters_json) {
  VERGER_TRY(auto out, api::parse_backup_parameters<api::BackupParameters>(parameters_json));
  const auto wrong = [](std::string text) {
    return Error{Errc::kInvalidArgument, "parameters: " + std::move(text)};
  };
  if (!is_repository_name(out.repository)) {
    return wrong("repository must be the name of one of the agent's repositories");
  }
  if (out.node.empty()) {
    return wrong("node is missing: the name under which this node's backups are kept");
  }
  if (out.threads < 1 || out.threads > kMostCopyThreads) {
    return wrong(fmt::format("threads must be 1 to {}", kMostCopyThreads));
  }
  if (!digests_of(out.digests)) {
    return wrong("digests must be none, logical or readable");
  }
  return out;
}

RepositoryCopy::RepositoryCopy(std::shared_ptr<const Repositories> repositories, CopyOrder order,
                               std::unique_ptr<scavenge::ParallelRunner> runner)
    : repositories_(std::move(repositories)),
      order_(std::move(order)),
      runner_(std::move(runner)),
      units_(kLeastUnits) {}

Result<bool> RepositoryCopy::step(Budget budget, Until until) {
  switch (phase_) {
    case Phase::kOpen:
      VERGER_RETURN_IF_ERROR(open());
      phase_ = Phase::kParent;
      return false;
    case Phase::kParent:
      VERGER_RETURN_IF_ERROR(begin());
      phase_ = Phase::kCopy;
      return false;
    case Phase::kCopy:
      if (until == Until::kCopied && job_->progress().phase == "compare") {
        return true;
      }
      VERGER_RETURN_IF_ERROR(step_copy(budget));
      return phase_ == Phase::kDone;
    case Phase::kDone:
      break;
  }
  return true;
}

Result<void> RepositoryCopy::open() {
  auto& source = order_.source;
  auto& database = repositories_->access().database;
  if (source.state == backup::SourceState::kStopped) {
    VERGER_TRY(auto found,
               backup::find_state(database, source.directory, /*assume_stopped=*/false));
    if (found.state != backup::SourceState::kStopped) {
      return Error{Errc::kRefused,
                   fmt::format("{}: a process has files of the database open; it was to be stopped",
                               source.directory.string())};
    }
    lock_ = std::move(found.lock);
  } else if (source.state == backup::SourceState::kLive) {
    // The node has just said that no scavenge runs: what is there is of one that was killed.
    const Path left = scavenge::ScavengeState::path_in(source.index()).string() + "-wal";
    VERGER_TRY(source.scavenge_ruled_out, database.exists(left));
  }
  VERGER_TRY(const auto config, repositories_->config(order_.to.repository));
  VERGER_RETURN_IF_ERROR(
      backup::refuse_inside(config, std::array<Path, 2>{source.directory, source.index()}));
  VERGER_TRY(opened_, repositories_->open_or_create(order_.to.repository, order_.to.repository_id));
  return {};
}

Result<void> RepositoryCopy::begin() {
  std::optional<backup::Manifest> parent;
  if (!order_.to.full) {
    VERGER_TRY(parent, backup::find_parent(opened_->repository, order_.to.node));
  }
  make_job(std::move(parent));
  return {};
}

void RepositoryCopy::make_job(std::optional<backup::Manifest> parent) {
  const auto& access = repositories_->access();
  backup::BackupOptions options;
  options.source = order_.source;
  options.node = {.node = order_.to.node,
                  .cluster = order_.to.cluster,
                  .host = access.host,
                  .directory = order_.directory.empty() ? order_.source.directory.string()
                                                        : order_.directory.string(),
                  .server_version = order_.server_version,
                  .state = {}};
  options.parent = std::move(parent);
  options.digests = digests_of(order_.to.digests).value_or(backup::WantedDigests::kNone);
  options.lanes = static_cast<std::size_t>(order_.to.threads);
  job_.emplace(access.database, opened_->repository, std::move(options), access.clock,
               access.random, access.log, runner_ ? *runner_ : scavenge::inline_runner());
}

Result<void> RepositoryCopy::step_copy(Budget budget) {
  auto& clock = repositories_->access().clock;
  const auto most = budget.units;
  budget.units = std::min(budget.units, units_);
  const auto began = clock.monotonic();
  const auto stepped = job_->step(budget);
  if (!stepped && job_->is_of_another_log()) {
    // Since then the node was restored, or its log cut, and has grown past where the parent ends,
    // so that a plan could not tell.
    repositories_->access().log.info("everything is read again",
                                     {{"reason", stepped.error().message}});
    make_job(std::nullopt);
    return {};
  }
  if (!stepped) {
    return stepped.error();
  }
  const auto& outcome = *stepped;
  const auto took = clock.monotonic() - began;
  if (took > kLongStep) {
    units_ = std::max(units_ / 2, kLeastUnits);
  } else if (took < kShortStep) {
    units_ = std::min(units_ * 2, std::max(most, kLeastUnits));
  }
  rest_ = outcome.kind == StepOutcome::Kind::kRest ? outcome.rest : milliseconds(0);
  if (outcome.kind == StepOutcome::Kind::kDone) {
    generation_ = generation_of(job_->manifest());
    phase_ = Phase::kDone;
  }
  return {};
}

JobProgress RepositoryCopy::progress() const {
  if (!job_) {
    return {.phase = "opening the repository"};
  }
  const auto& seen = job_->progress();
  JobProgress out{.phase = phase_text(seen.phase), .bytes = static_cast<std::int64_t>(seen.copied)};
  if (seen.phase == "index" || seen.phase == "chunks") {
    out.done = static_cast<std::int64_t>(seen.done);
    out.unit = "bytes";
  }
  if (seen.phase == "chunks") {  // before that it is not known how much there is
    out.total = static_cast<std::int64_t>(seen.total);
  }
  return out;
}

Result<StepOutcome> CopyPart::step(Budget budget) {
  VERGER_TRY(const bool is_there, copy_->step(budget, until_));
  if (is_there) {
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  if (copy_->rest() > milliseconds(0)) {
    return StepOutcome{.kind = StepOutcome::Kind::kRest, .rest = copy_->rest()};
  }
  return StepOutcome{.kind = StepOutcome::Kind::kMore};
}

}  // namespace verger::agent
