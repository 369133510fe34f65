#include "engine/backup/generation_digest.h"

#include "engine/backup/generation_files.h"
#include "engine/streams/event_store.h"

namespace verger::backup {

struct GenerationDigestJob::State {
  GenerationFiles files;
  LogPosition end;
  bool readable;
  Clock& clock;
  Random& random;
  Log& log;
  std::unique_ptr<streams::Database> database;
  std::unique_ptr<streams::DigestJob> job;
  BackupDigests digests;

  /// As of the last record: the time does not change what clients could read then.
  Result<void> open() {
    streams::DatabaseOptions options;
    options.log.access = log::Access::kReadOnly;
    options.index.read_only = true;
    VERGER_TRY(database, streams::Database::open(files, files.root(), std::move(options),
                                                 /*commit_all=*/true, clock, random, log));
    const auto& log_of = database->transaction_log();
    Bytes buffer;
    VERGER_TRY(const auto last, log::read_before(log_of, end, buffer));
    if (last) {
      digests.readable_now =
          std::visit([](const auto& record) { return record.timestamp; }, last->record);
    }
    streams::DigestOptions with;
    with.readable = readable;
    job = std::make_unique<streams::DigestJob>(*database, end, digests.readable_now, with);
    return {};
  }

  void take() {
    const auto& found = job->digest();
    digests.chunks = found.chunks;
    digests.logical = found.logical;
    digests.records = found.records;
    if (readable) {
      digests.readable = found.readable;
    } else {
      digests.readable_now = {};
    }
  }
};

GenerationDigestJob::GenerationDigestJob(FileSystem& files, BlobStore& store,
                                         const Manifest& manifest, bool readable, Clock& clock,
                                         Random& random, Log& log)
    : state_(new State{.files = GenerationFiles(files, store, manifest),
                       .end = manifest.positions.end,
                       .readable = readable,
                       .clock = clock,
                       .random = random,
                       .log = log,
                       .database = nullptr,
                       .job = nullptr,
                       .digests = {}}) {}
GenerationDigestJob::~GenerationDigestJob() = default;

Result<StepOutcome> GenerationDigestJob::step(Budget budget) {
  if (!state_->job) {
    VERGER_RETURN_IF_ERROR(state_->open());
    return StepOutcome{};
  }
  VERGER_TRY(const auto outcome, state_->job->step(budget));
  if (outcome.kind == StepOutcome::Kind::kDone) {
    state_->take();
  }
  return outcome;
}

const BackupDigests& GenerationDigestJob::digests() const { return state_->digests; }

}  // namespace verger::backup
