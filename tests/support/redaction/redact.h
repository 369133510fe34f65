#pragma once

#include <string>
#include <vector>

#include "engine/base/memory_file_system.h"
#include "engine/redaction/redaction_job.h"
#include "engine/redaction/redaction_plan.h"
#include "engine/streams/event_store.h"
#include "tests/support/manual_clock.h"

namespace verger::test {

/// Opens read-only, with an index of any table size.
inline Result<std::unique_ptr<streams::Database>> open_to_read(FileSystem& files,
                                                               const Path& directory) {
  static ManualClock clock;
  static SeededRandom random(1);
  streams::DatabaseOptions options;
  options.log.access = log::Access::kReadOnly;
  options.log.assume_stopped = true;
  options.index.read_only = true;
  return streams::Database::open(files, directory, std::move(options), /*commit_all=*/true, clock,
                                 random, null_log());
}

/// A plan of the database as it is.
inline Result<redaction::RedactionPlan> plan(FileSystem& files, const Path& directory,
                                             const redaction::RedactionRequest& request) {
  VERGER_TRY(const auto database, open_to_read(files, directory));
  return redaction::plan_redaction(files, *database, request);
}

/// Plans and redacts, as `verger-db redact` does. Nothing is opened for writing where there is
/// nothing to do.
inline Result<std::vector<redaction::RedactedChunk>> redact(
    FileSystem& files, const Path& directory, const redaction::RedactionRequest& request,
    const redaction::RedactionConsent& consent = {}) {
  VERGER_TRY(const auto made, plan(files, directory, request));
  VERGER_RETURN_IF_ERROR(redaction::check_plan(made, consent));
  if (made.to_do() == 0 && made.leftovers.empty()) {
    VERGER_RETURN_IF_ERROR(files.sync_directory(directory));
    return std::vector<redaction::RedactedChunk>();
  }
  ManualClock clock;
  SeededRandom random(7);
  log::LogOptions options;
  options.access = log::Access::kWrite;
  options.assume_stopped = true;
  VERGER_TRY(const auto log,
             log::TransactionLog::open(files, directory, options, clock, random, null_log()));
  redaction::RedactionJob job(files, *log, made, consent, random, null_log());
  for (;;) {
    VERGER_TRY(const auto outcome, job.step({}));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      return job.chunks();
    }
  }
}

/// Names of the files in which `text` is found.
inline std::vector<std::string> files_with(FileSystem& files, const Path& directory,
                                           std::string_view text) {
  std::vector<std::string> found;
  const auto entries = files.list(directory);
  for (const auto& entry : entries.value()) {
    if (entry.is_directory) {
      const auto below = files_with(files, directory / entry.name, text);
      found.insert(found.end(), below.begin(), below.end());
      continue;
    }
    const auto bytes = read_file(files, directory / entry.name, 1U << 30U);
    if (as_text(bytes.value()).find(text) != std::string_view::npos) {
      found.push_back(entry.name);
    }
  }
  return found;
}

}  // namespace verger::test
