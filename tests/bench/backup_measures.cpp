// What backups cost, beside a copy of the same files with their SHA-256.
#include "engine/backup/backup_job.h"
#include "engine/backup/directory_store.h"
#include "engine/backup/restore_job.h"
#include "engine/backup/verify_job.h"
#include "tests/bench/measures.h"

namespace verger::bench {

using nlohmann::json;

Result<void> run_job(Job& job) {
  for (;;) {
    VERGER_TRY(const auto outcome, job.step(Budget{}));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      return {};
    }
  }
}

Result<json> back_up(const Path& directory, const Path& repository, int threads) {
  backup::DirectoryStore store(posix_file_system(), repository, system_random());
  VERGER_TRY(auto opened, backup::Repository::open(store, backup::Repository::Create::kIfMissing));
  backup::BackupOptions options;
  options.source.directory = directory;
  options.node.node = "bench";
  options.lanes = static_cast<std::size_t>(threads);
  VERGER_TRY(options.parent, backup::find_parent(opened, "bench"));
  const auto runner = scavenge::make_thread_runner(threads);
  backup::BackupJob job(posix_file_system(), opened, std::move(options), system_clock(),
                        system_random(), null_log(), *runner);
  VERGER_RETURN_IF_ERROR(run_job(job));
  return json{{"bytes", job.manifest().stored_bytes()},
              {"copied", job.progress().copied},
              {"reused", job.progress().reused}};
}

Result<json> verify_backup(const Path& repository, int threads) {
  backup::DirectoryStore store(posix_file_system(), repository, system_random());
  VERGER_TRY(const auto opened, backup::Repository::open(store, backup::Repository::Create::kNo));
  VERGER_TRY(const auto manifest, opened.load("latest"));
  const auto runner = scavenge::make_thread_runner(threads);
  backup::VerifyBytesJob job(store, manifest, static_cast<std::size_t>(threads), *runner);
  VERGER_RETURN_IF_ERROR(run_job(job));
  return json{{"bytes", job.total()}, {"damage", job.damage().size()}};
}

Result<json> restore_backup(const Path& repository, const Path& directory, int threads,
                            bool verify) {
  backup::DirectoryStore store(posix_file_system(), repository, system_random());
  VERGER_TRY(const auto opened, backup::Repository::open(store, backup::Repository::Create::kNo));
  VERGER_TRY(const auto manifest, opened.load("latest"));
  const auto runner = scavenge::make_thread_runner(threads);
  backup::RestoreOptions options;
  options.directory = directory;
  options.lanes = static_cast<std::size_t>(threads);
  options.verify_after = verify;
  backup::RestoreJob job(posix_file_system(), store, manifest, options, system_clock(),
                         system_random(), null_log(), *runner);
  VERGER_RETURN_IF_ERROR(run_job(job));
  return json{{"bytes", manifest.stored_bytes()}};
}

}  // namespace verger::bench
