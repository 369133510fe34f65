#include "nodeagent/operations/backup/catalogue_jobs.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace verger::agent {
namespace {

/// Manifests of a few megabytes each.
constexpr std::size_t kManifestsInAStep = 8;

api::BackupCheckSummary summary_of(const backup::BackupCheck& check) {
  return {.at = check.at,
          .passed = check.passed,
          .summary = check.summary,
          .duration_ms = check.duration_ms};
}

}  // namespace

api::BackupGeneration generation_of(const backup::Manifest& manifest) {
  api::BackupGeneration out;
  out.id = manifest.id;
  out.parent = manifest.parent;
  out.node = manifest.source.node;
  out.cluster = manifest.source.cluster;
  out.host = manifest.source.host;
  out.server_version = manifest.source.server_version;
  out.state = manifest.source.state;
  out.started_at = manifest.started_at;
  out.checkpoints_at = manifest.checkpoints_at;
  out.finished_at = manifest.finished_at;
  out.end_position = manifest.positions.end.value();
  out.writer_position = manifest.positions.writer.value();
  out.epoch_number = manifest.positions.epoch_number.value();
  if (!manifest.positions.epoch_id.is_zero()) {
    out.epoch_id = manifest.positions.epoch_id.to_string();
  }
  out.chunk_size = manifest.positions.chunk_size;
  out.stored_bytes = static_cast<std::int64_t>(manifest.stored_bytes());
  out.restored_bytes = static_cast<std::int64_t>(manifest.restored_bytes());
  out.reused_bytes = static_cast<std::int64_t>(manifest.reused_bytes);
  out.files = manifest.files.size();
  if (manifest.digests) {
    out.logical_digest = to_hex(manifest.digests->logical);
    if (manifest.digests->readable) {
      out.readable_digest = to_hex(*manifest.digests->readable);
    }
  }
  out.warnings = manifest.warnings;
  return out;
}

CatalogueJob::CatalogueJob(std::shared_ptr<const Repositories> repositories, std::string name,
                           std::string known_id, Generations known)
    : repositories_(std::move(repositories)),
      known_id_(std::move(known_id)),
      known_(std::move(known)) {
  repository_.name = std::move(name);
  repository_.drills = !repositories_->access().scratch.empty();
  if (!repository_.drills) {
    repository_.drill_problem = "the agent has no scratch directory (--backup-scratch)";
  }
  repository_.snapshots = !repositories_->access().snapshots.program.empty();
  if (!repository_.snapshots) {
    repository_.snapshot_problem =
        "the agent has no program that makes disk snapshots (--snapshot-command)";
  }
}

Result<StepOutcome> CatalogueJob::step(Budget /*budget*/) {
  if (auto looked = look(); !looked) {
    repository_.error = looked.error().message;
    phase_ = Phase::kDone;
    opened_ = nullptr;
    return std::move(looked).error();
  }
  return StepOutcome{.kind = phase_ == Phase::kDone ? StepOutcome::Kind::kDone
                                                    : StepOutcome::Kind::kMore};
}

Result<void> CatalogueJob::look() {
  switch (phase_) {
    case Phase::kOpen:
      return open();
    case Phase::kManifests:
      return read_some();
    case Phase::kChecks:
      VERGER_RETURN_IF_ERROR(read_checks());
      phase_ = Phase::kDone;
      opened_ = nullptr;
      return {};
    case Phase::kDone:
      break;
  }
  return {};
}

Result<void> CatalogueJob::open() {
  auto& files = repositories_->access().files;
  VERGER_TRY(const auto config, repositories_->config(repository_.name));
  repository_.location = config.location;
  repository_.encrypted = !config.key_file.empty();
  repository_.compression = to_string(config.compression);
  auto opened = repositories_->open(repository_.name, {});
  if (!config.is_object_store()) {
    if (const auto space = files.space(config.location)) {
      repository_.free_bytes = static_cast<std::int64_t>(space->available);
    }
  }
  if (!opened && opened.error().code == Errc::kNotFound) {
    repository_.generations = 0;  // the first backup makes it
    phase_ = Phase::kDone;
    return {};
  }
  if (!opened) {
    return std::move(opened).error();
  }
  opened_ = *std::move(opened);
  repository_.id = opened_->id();
  VERGER_TRY(const auto ids, opened_->repository.generation_ids());
  repository_.generations = static_cast<std::int64_t>(ids.size());
  for (const auto& id : ids) {
    const auto found = known_.find(id);
    if (found != known_.end() && known_id_ == repository_.id) {
      generations_.insert(known_.extract(found));
    } else {
      unread_.push_back(id);
    }
  }
  known_.clear();
  phase_ = Phase::kManifests;
  return {};
}

Result<void> CatalogueJob::read_some() {
  for (std::size_t i = 0; i < kManifestsInAStep && !unread_.empty(); ++i) {
    const auto id = std::move(unread_.back());
    unread_.pop_back();
    const auto manifest = opened_->repository.load(id);
    if (manifest) {
      generations_.insert_or_assign(id, generation_of(*manifest));
    } else if (manifest.error().code == Errc::kNotFound) {
      --repository_.generations;  // deleted since
    } else if (manifest.error().code == Errc::kCorruption ||
               manifest.error().code == Errc::kUnsupported) {
      api::BackupGeneration damaged;
      damaged.id = id;
      damaged.damage = manifest.error().message;
      generations_.insert_or_assign(id, std::move(damaged));
    } else {
      return manifest.error();
    }
  }
  if (unread_.empty()) {
    phase_ = Phase::kChecks;
  }
  return {};
}

Result<void> CatalogueJob::read_checks() {
  VERGER_TRY(const auto latest, opened_->repository.latest_checks());
  for (auto& [id, generation] : generations_) {
    generation.last_verify.reset();
    generation.last_drill.reset();
    const auto found = latest.find(id);
    if (found == latest.end()) {
      continue;
    }
    if (found->second.verify) {
      generation.last_verify = summary_of(*found->second.verify);
    }
    if (found->second.drill) {
      generation.last_drill = summary_of(*found->second.drill);
    }
  }
  return {};
}

Result<StepOutcome> NamesJob::step(Budget /*budget*/) {
  VERGER_TRY(names_, repositories_->names());
  return StepOutcome{.kind = StepOutcome::Kind::kDone};
}

}  // namespace verger::agent
