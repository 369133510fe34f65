#include "engine/backup/source.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/database_files.h"
#include "engine/log/chunk.h"
#include "engine/log/pending_truncation.h"
#include "engine/scavenge/scavenge_state.h"

namespace verger::backup {
namespace {

constexpr std::string_view kScavengeSuffix = ".scavenge.tmp";

Error source_refused(const Path& file, std::string_view why) {
  return {Errc::kRefused, fmt::format("{}: {}", file.string(), why)};
}

/// Of a node at work: a new chunk file, one that another node sends ("<guid>.tmp" of a server,
/// "….chunk.tmp" of ours), a checkpoint file.
bool is_of_a_node(std::string_view name) {
  constexpr std::size_t kChunkName = 19;  // chunk-NNNNNN.VVVVVV
  return log::parse_chunk_file_name(name.substr(0, kChunkName)) ||
         Uuid::parse(name.substr(0, name.size() - 4)) || name.ends_with(".chunk.tmp") ||
         name.ends_with(".chk.tmp");
}

/// A server's scavenge keeps its state open in write-ahead mode as long as it runs.
Result<void> refuse_scavenge(FileSystem& files, const BackupSource& source) {
  const Path wal = scavenge::ScavengeState::path_in(source.index()).string() + "-wal";
  VERGER_TRY(const bool there, files.exists(wal));
  if (there && !source.scavenge_ruled_out) {
    return source_refused(
        wal,
        "a scavenge runs, or one was killed: stop it (DELETE /admin/scavenge/current), and resume "
        "it after the backup; if none runs, give --no-scavenge-runs");
  }
  return {};
}

Result<void> refuse_temporary_files(FileSystem& files, const BackupSource& source) {
  VERGER_TRY(const auto entries, files.list(source.directory));
  for (const auto& entry : entries) {
    if (entry.is_directory || !entry.name.ends_with(".tmp")) {
      continue;
    }
    if (entry.name.ends_with(kScavengeSuffix)) {
      return source_refused(source.directory / entry.name,
                            "a scavenge is writing this chunk: stop it first "
                            "(DELETE /admin/scavenge/current), and resume it after the backup");
    }
    if (!is_of_a_node(entry.name)) {
      return source_refused(source.directory / entry.name,
                            "a redaction may be working on this copy of a chunk: wait until it "
                            "has ended, or remove the file if it was left behind");
    }
  }
  return {};
}

}  // namespace

std::string_view to_string(SourceState state) {
  switch (state) {
    case SourceState::kStopped:
      return "stopped";
    case SourceState::kLive:
      return "live";
    case SourceState::kFrozen:
      return "frozen";
  }
  return "live";
}

Result<FoundState> find_state(FileSystem& files, const Path& directory, bool assume_stopped) {
  // Before the lock, whose file would be made beside a server's.
  if (!assume_stopped && is_machine_disk(files)) {
    // Where it cannot be seen whether a server runs, one may.
    const auto writer = log::process_that_writes(directory);
    if (!writer || writer->has_value()) {
      return FoundState{SourceState::kLive, nullptr};
    }
  }
  auto lock = files.lock(directory / "verger.lock");
  if (!lock && lock.error().code == Errc::kRefused) {
    return FoundState{SourceState::kLive, nullptr};
  }
  if (!lock) {
    return lock.error().within("a snapshot that cannot be written to is backed up with --frozen");
  }
  return FoundState{SourceState::kStopped, *std::move(lock)};
}

Result<void> check_source(FileSystem& files, const BackupSource& source) {
  VERGER_TRY(const auto pending, log::pending_truncation(files, source.directory));
  if (pending.value() >= 0) {
    return source_refused(source.directory / "truncate.chk",
                          fmt::format("the log is to be cut to {} at the next start: start the "
                                      "node, so that it does that, and repeat the backup then",
                                      pending));
  }
  if (source.state != SourceState::kLive) {
    return {};
  }
  const Path secondary = source.directory / "kurrent.ddb";
  VERGER_TRY(const bool has_secondary, files.exists(secondary));
  if (has_secondary) {
    return source_refused(secondary,
                          "the server (25.1 or newer) keeps its secondary indexes in this file, "
                          "and it cannot be copied while the server runs: stop the node for the "
                          "backup, or take it from a disk snapshot (--frozen)");
  }
  VERGER_RETURN_IF_ERROR(refuse_temporary_files(files, source));
  return refuse_scavenge(files, source);
}

}  // namespace verger::backup
