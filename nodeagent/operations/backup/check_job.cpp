#include "nodeagent/operations/backup/check_job.h"

#include <fmt/format.h>
#include <utility>

namespace verger::agent {
namespace {

/// More are only counted.
constexpr std::size_t kDamageShown = 100;

}  // namespace

Result<api::BackupCheckParameters> check_parameters_of(std::string_view parameters_json) {
  VERGER_TRY(auto out, api::parse_backup_parameters<api::BackupCheckParameters>(parameters_json));
  if (!is_repository_name(out.repository)) {
    return Error{Errc::kInvalidArgument,
                 "parameters: repository must be the name of one of the agent's repositories"};
  }
  if (!backup::is_generation_id(out.generation)) {
    return Error{Errc::kInvalidArgument, "parameters: generation must be the id of a backup"};
  }
  return out;
}

BackupCheckJob::BackupCheckJob(std::shared_ptr<const Repositories> repositories,
                               api::BackupCheckParameters parameters)
    : repositories_(std::move(repositories)), parameters_(std::move(parameters)) {
  result_.generation = parameters_.generation;
}

Result<StepOutcome> BackupCheckJob::step(Budget budget) {
  VERGER_RETURN_IF_ERROR(look(budget));
  return StepOutcome{.kind = phase_ == Phase::kDone ? StepOutcome::Kind::kDone
                                                    : StepOutcome::Kind::kMore};
}

Result<void> BackupCheckJob::look(Budget budget) {
  switch (phase_) {
    case Phase::kOpen:
      VERGER_RETURN_IF_ERROR(open());
      phase_ = Phase::kBytes;
      return {};
    case Phase::kBytes:
      return step_bytes(budget);
    case Phase::kStructure:
      return step_structure(budget);
    case Phase::kRecord:
      VERGER_RETURN_IF_ERROR(record());
      phase_ = Phase::kDone;
      return {};
    case Phase::kDone:
      break;
  }
  return {};
}

Result<void> BackupCheckJob::open() {
  began_ = repositories_->access().clock.monotonic();
  VERGER_TRY(opened_, repositories_->open(parameters_.repository, parameters_.repository_id));
  auto manifest = opened_->repository.load(parameters_.generation);
  if (!manifest) {
    return manifest.error().within(fmt::format("repository \"{}\"", opened_->name));
  }
  manifest_ = *std::move(manifest);
  bytes_.emplace(*opened_->store, *manifest_);
  return {};
}

Result<void> BackupCheckJob::step_bytes(Budget budget) {
  VERGER_TRY(const auto outcome, bytes_->step(budget));
  result_.bytes = static_cast<std::int64_t>(bytes_->done());
  if (outcome.kind != StepOutcome::Kind::kDone) {
    return {};
  }
  for (const auto& damage : bytes_->damage()) {
    add_damage(damage.path, damage.text);
  }
  const auto& access = repositories_->access();
  files_.emplace(access.files, *opened_->store, *manifest_);
  verify::VerifyDatabaseOptions options;
  options.directory = files_->root();
  options.chunk_size = manifest_->positions.chunk_size;
  options.scratch = scratch();
  structure_.emplace(*files_, std::move(options), access.clock, access.random, access.log);
  phase_ = Phase::kStructure;
  return {};
}

Result<void> BackupCheckJob::step_structure(Budget budget) {
  const auto stepped = structure_->step(budget);
  // Bytes that are missing or differ are reason enough for a database that cannot be read.
  if (!stepped && damaged_ == 0) {
    add_damage({}, stepped.error().message);
  }
  if (stepped && stepped->kind != StepOutcome::Kind::kDone) {
    return {};
  }
  for (const auto& finding : structure_->findings().all()) {
    if (finding.damage) {
      add_damage(Path(finding.file).lexically_relative(files_->root()).string(), finding.text);
    }
  }
  structure_.reset();
  // Empty by now; there may be none.
  static_cast<void>(repositories_->access().files.remove(scratch()).has_value());
  if (auto problem = files_->store_problem()) {
    return *std::move(problem);  // what was found may be no damage
  }
  phase_ = Phase::kRecord;
  return {};
}

Path BackupCheckJob::scratch() const {
  return repositories_->access().temporary / fmt::format("check-{}", manifest_->id);
}

void BackupCheckJob::add_damage(std::string path, std::string text) {
  ++damaged_;
  if (result_.damage.size() < kDamageShown) {
    result_.damage.push_back({.path = std::move(path), .text = std::move(text)});
  }
}

Result<void> BackupCheckJob::record() {
  const auto& access = repositories_->access();
  result_.passed = damaged_ == 0;
  result_.duration_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(access.clock.monotonic() - began_)
          .count();
  const auto summary =
      result_.passed
          ? fmt::format("{} files, {} bytes: no damage", manifest_->files.size(), result_.bytes)
          : fmt::format("{} findings; the first: {}{}{}", damaged_, result_.damage.front().path,
                        result_.damage.front().path.empty() ? "" : ": ",
                        result_.damage.front().text);
  return opened_->repository.add_check(
      manifest_->id, {.kind = backup::BackupCheck::Kind::kVerify,
                      .at = access.clock.now(),
                      .by = parameters_.by.empty() ? fmt::format("verger-agent on {}", access.host)
                                                   : parameters_.by,
                      .passed = result_.passed,
                      .summary = summary,
                      .duration_ms = result_.duration_ms,
                      .position = manifest_->positions.end,
                      .figures = {{"bytes", result_.bytes}}});
}

JobProgress BackupCheckJob::progress() const {
  if (phase_ == Phase::kOpen || !bytes_) {
    return {.phase = "opening the repository"};
  }
  const auto read = static_cast<std::int64_t>(bytes_->done());
  if (phase_ == Phase::kBytes) {
    return {.phase = "reading the backup",
            .done = read,
            .total = static_cast<std::int64_t>(bytes_->total()),
            .unit = "bytes",
            .bytes = read};
  }
  if (!structure_) {
    return {.phase = "recording the check", .bytes = read};
  }
  const auto seen = structure_->progress();
  const bool in_entries = seen.stage == verify::VerifyProgress::Stage::kIndex;
  return {.phase = in_entries ? "comparing index and log" : "reading it as a database",
          .done = static_cast<std::int64_t>(seen.done),
          .total = static_cast<std::int64_t>(seen.total),
          .unit = in_entries ? "entries" : "bytes",
          .bytes = read + static_cast<std::int64_t>(seen.bytes)};
}

}  // namespace verger::agent
