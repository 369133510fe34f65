#include <chrono>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "engine/backup/generation_digest.h"
#include "engine/backup/generation_files.h"
#include "engine/backup/repository.h"
#include "engine/backup/verify_job.h"
#include "engine/tool/backup_command.h"
#include "engine/tool/detail/backup_text.h"
#include "engine/tool/detail/drive_job.h"
#include "engine/tool/detail/findings_text.h"
#include "engine/tool/detail/parallel.h"
#include "engine/tool/detail/verify_database.h"
#include "engine/tool/progress.h"
#include "engine/tool/stop_signals.h"
#include "engine/tool/table.h"

namespace verger::tool {
namespace {

struct VerifyBackupArguments {
  std::string repository;
  std::string id = "latest";
  std::string scratch;
  bool bytes_only = false;
  bool digests = false;
  std::uint64_t rate = 0;
  int threads = default_threads();
};

Result<void> verify_bytes(ToolContext& tool, const VerifyBackupArguments& arguments,
                          backup::BlobStore& store, const backup::Manifest& manifest,
                          verify::Findings& findings) {
  const auto runner = scavenge::make_thread_runner(arguments.threads);
  backup::VerifyBytesJob job(store, manifest, static_cast<std::size_t>(arguments.threads), *runner);
  Progress progress(tool, "verify backup", job.total());
  DriveOptions drive;
  drive.bytes_per_second = arguments.rate << 20U;
  drive.bytes = [&] { return job.done(); };
  drive.tick = [&] { progress.update(job.done()); };
  VERGER_RETURN_IF_ERROR(drive_job(tool, job, drive));
  for (const auto& damage : job.damage()) {
    findings.damage(damage.path, std::nullopt, damage.text);
  }
  return {};
}

/// The digests of the manifest, computed again from the content.
Result<void> verify_digests(ToolContext& tool, backup::BlobStore& store,
                            const backup::Manifest& manifest, verify::Findings& findings) {
  if (!manifest.digests) {
    findings.note(manifest.id, "was made without --digests: there are none to compare");
    return {};
  }
  backup::GenerationDigestJob job(tool.files, store, manifest,
                                  manifest.digests->readable.has_value(), tool.clock, tool.random,
                                  tool.log);
  VERGER_RETURN_IF_ERROR(drive_job(tool, job, {}));
  if (job.digests() != *manifest.digests) {
    findings.damage(manifest.id, std::nullopt,
                    fmt::format("the log has the logical digest {}, the manifest says {}",
                                to_hex(job.digests().logical), to_hex(manifest.digests->logical)));
  }
  return {};
}

/// Bytes, digests, structure; what is found is printed.
Result<int> look_for_damage(ToolContext& tool, const VerifyBackupArguments& arguments,
                            backup::BlobStore& store, const backup::Manifest& manifest,
                            verify::Findings& findings) {
  VERGER_RETURN_IF_ERROR(verify_bytes(tool, arguments, store, manifest, findings));
  const bool sound = findings.damage_count() == 0;
  if (sound && arguments.digests) {
    VERGER_RETURN_IF_ERROR(verify_digests(tool, store, manifest, findings));
  }
  if (!tool.json) {
    tool.out << fmt::format("backup {} of {}: {} read and compared\n", manifest.id,
                            printable(manifest.source.node), human_bytes(manifest.stored_bytes()));
  }
  if (arguments.bytes_only || manifest.positions.end.value() == 0) {
    print_findings(tool, findings);
    if (!tool.json) {
      tool.out << (findings.damage_count() == 0
                       ? "no damage found\n"
                       : fmt::format("damage found in {} places\n", findings.damage_count()));
    }
    return findings.damage_count() == 0 ? kExitDone : kExitFailed;
  }
  backup::GenerationFiles files(tool.files, store, manifest);
  ToolContext within{files,    tool.clock, tool.random,   tool.log,     tool.out,
                     tool.err, tool.json,  tool.terminal, tool.progress};
  DatabaseArguments database;
  database.directory = files.root().string();
  const VerifyOptions how{.threads = arguments.threads,
                          .scratch = arguments.scratch.empty()
                                         ? std::filesystem::temp_directory_path()
                                         : Path(arguments.scratch),
                          .bytes_per_second = arguments.rate << 20U};
  VERGER_TRY(const int code, verify_database(within, database, how, findings));
  if (auto problem = files.store_problem()) {
    problem->message += "; what is listed as damage may be none";
    return *std::move(problem);
  }
  return code;
}

std::string summary_of(const VerifyBackupArguments& arguments, const backup::Manifest& manifest,
                       const verify::Findings& findings) {
  const auto damage = findings.damage_count();
  const auto* const what = arguments.bytes_only ? "bytes compared"
                           : arguments.digests  ? "bytes, structure and digests compared"
                                                : "bytes and structure compared";
  return fmt::format("{} ({}): {}", what, human_bytes(manifest.stored_bytes()),
                     damage == 0 ? "no damage" : fmt::format("damage in {} places", damage));
}

Result<int> verify_backup(ToolContext& tool, const VerifyBackupArguments& arguments) {
  VERGER_TRY(const auto store, open_repository_store(tool, arguments.repository));
  VERGER_TRY(auto repository, backup::Repository::open(*store, backup::Repository::Create::kNo));
  VERGER_TRY(const auto manifest, repository.load(arguments.id));
  const StopSignals signals;
  verify::Findings findings;
  const auto start = tool.clock.monotonic();
  VERGER_TRY(const int code, look_for_damage(tool, arguments, *store, manifest, findings));
  const auto duration =
      std::chrono::duration_cast<std::chrono::milliseconds>(tool.clock.monotonic() - start);
  const auto recorded = repository.add_check(
      manifest.id, {.kind = backup::BackupCheck::Kind::kVerify,
                    .at = tool.clock.now(),
                    .by = "verger-db on " + host_name(),
                    .passed = code == kExitDone,
                    .summary = summary_of(arguments, manifest, findings),
                    .duration_ms = duration.count(),
                    .position = manifest.positions.end,
                    .figures = {{"bytes", static_cast<std::int64_t>(manifest.stored_bytes())},
                                {"damage", static_cast<std::int64_t>(findings.damage_count())}}});
  if (!recorded) {
    // Of a repository that this user may only read: the answer stands nevertheless.
    tool.err << "verger-db: the repository has no record of this check: "
             << printable(recorded.error().message) << '\n';
  }
  return code;
}

}  // namespace

void add_backup_verify_command(CLI::App& backup, Action& chosen) {
  auto arguments = std::make_shared<VerifyBackupArguments>();
  auto* command = backup.add_subcommand(
      "verify",
      "Read every byte of a backup, and look for damage in its chunks and index, without restoring "
      "it; exit code 1 when there is any");
  command->add_option("REPOSITORY", arguments->repository, std::string(kRepositoryText))
      ->required();
  command->add_option("ID", arguments->id, "The backup (default: the latest)");
  command->add_flag("--bytes-only", arguments->bytes_only,
                    "Only the content's sizes and SHA-256, not what chunks and index say");
  command->add_flag("--digests", arguments->digests,
                    "Compute the digests again that the manifest has");
  command->add_option("--rate", arguments->rate, "At most so many MiB a second (default: no limit)")
      ->check(check_positive<std::uint64_t>);
  command
      ->add_option("--threads", arguments->threads,
                   "Files read side by side (default: one for each processor)")
      ->check(CLI::Range(1, 64));
  command->add_option("--tmp-dir", arguments->scratch,
                      "For sorting more than 4 million events, and for a copy of scavenging.db "
                      "(default: the system's directory for temporary files)");
  command->footer("Example:\n  verger-db backup verify /backup/orders");
  command->callback([arguments, &chosen] {
    chosen = [arguments](ToolContext& tool) { return verify_backup(tool, *arguments); };
  });
}

}  // namespace verger::tool
