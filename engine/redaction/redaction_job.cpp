#include "engine/redaction/redaction_job.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/redaction/detail/chunk_copy.h"
#include "engine/redaction/detail/chunk_digests.h"
#include "engine/redaction/record_blanking.h"

namespace verger::redaction {
namespace {

constexpr std::uint64_t kBytesPerStep = 4ULL << 20U;

Result<StepOutcome> to_step(Result<void> outcome) {
  return outcome ? Result<StepOutcome>(StepOutcome{}) : std::move(outcome).error();
}

}  // namespace

struct RedactionJob::State {
  FileSystem& files;
  log::TransactionLog& log;
  RedactionPlan plan;
  RedactionConsent consent;
  Random& random;
  Log& out;
  RedactionProgress progress{};
  std::vector<RedactedChunk> done{};
  std::atomic<bool> stop = false;
  bool prepared = false;
  std::size_t next = 0;             ///< of the plan's chunks
  std::uint64_t copied_before = 0;  ///< bytes of the chunks before
  std::shared_ptr<const log::Chunk> source{};
  std::unique_ptr<detail::ChunkCopy> copy{};
  Md5Digest md5_of_copy{};
  std::unique_ptr<detail::ChunkDigests> digests{};  ///< once all is copied and checked

  /// A copy that was not switched in is of no use.
  ~State() {
    if (digests != nullptr) {
      copy->remove();
    }
  }
  Result<void> prepare();
  Result<void> check_space() const;
  Result<void> start_chunk();
  Result<std::vector<BytePatch>> patches();
  Result<void> finish_copy();
  Result<void> switch_chunk();
  Result<void> check_copy(const log::Chunk& copied) const;
  Result<void> finish();
};

RedactionJob::RedactionJob(FileSystem& files, log::TransactionLog& log, RedactionPlan plan,
                           const RedactionConsent& consent, Random& random, Log& out)
    : state_(new State{.files = files,
                       .log = log,
                       .plan = std::move(plan),
                       .consent = consent,
                       .random = random,
                       .out = out}) {
  auto& progress = state_->progress;
  progress.chunks_total = state_->plan.chunks.size();
  for (const auto& chunk : state_->plan.chunks) {
    progress.bytes_total += chunk.file_size;
  }
}
RedactionJob::~RedactionJob() = default;

const RedactionProgress& RedactionJob::progress() const { return state_->progress; }
const std::vector<RedactedChunk>& RedactionJob::chunks() const { return state_->done; }
void RedactionJob::request_stop() { state_->stop = true; }
std::atomic<bool>& RedactionJob::stop_flag() { return state_->stop; }

Result<StepOutcome> RedactionJob::step(Budget /*budget*/) {
  State& s = *state_;
  if (s.stop) {
    return Error{Errc::kCancelled, "the redaction was stopped; run it again to finish it"};
  }
  if (!s.prepared) {
    VERGER_RETURN_IF_ERROR(s.prepare());
    s.prepared = true;
    return StepOutcome{};
  }
  if (s.copy == nullptr) {
    if (s.next == s.plan.chunks.size()) {
      VERGER_RETURN_IF_ERROR(s.finish());
      return StepOutcome{StepOutcome::Kind::kDone, {}};
    }
    VERGER_RETURN_IF_ERROR(s.start_chunk());
  }
  if (s.digests == nullptr) {
    VERGER_TRY(const bool copied, s.copy->step(kBytesPerStep));
    s.progress.bytes_done = s.copied_before + s.copy->copied();
    return copied ? to_step(s.finish_copy()) : StepOutcome{};
  }
  const auto digested = s.digests->step(kBytesPerStep);
  if (!digested) {
    return digested.error();
  }
  return *digested ? to_step(s.switch_chunk()) : StepOutcome{};
}

Result<void> RedactionJob::State::prepare() {
  VERGER_RETURN_IF_ERROR(check_plan(plan, consent));
  VERGER_RETURN_IF_ERROR(check_space());
  if (plan.has_active()) {
    const auto& active = plan.chunks.back();
    const auto chunk = log.chunk_at(plan.records[active.records.front()].position);
    if (chunk != nullptr && !chunk->completed()) {
      VERGER_RETURN_IF_ERROR(log.complete_chunk());
      VERGER_FAILPOINT("redaction.after-completion");
    }
  }
  return {};
}

Result<void> RedactionJob::State::check_space() const {
  const auto need = plan.disk_need();
  if (need == 0) {
    return {};
  }
  VERGER_TRY(const auto space, files.space(log.directory()));
  if (space.available < need) {
    return Error{Errc::kNoSpace,
                 fmt::format("{}: {} bytes are free, and the copy of the largest chunk file needs "
                             "{}; nothing was changed: free some space and repeat",
                             log.directory().string(), space.available, need)};
  }
  return {};
}

Result<void> RedactionJob::State::start_chunk() {
  const auto& planned = plan.chunks[next];
  source = log.chunk_at(plan.records[planned.records.front()].position);
  if (source == nullptr || !source->completed() || source->start() != planned.start ||
      source->end() != planned.end) {
    return Error{Errc::kConflict, fmt::format("{}: is no longer what the plan was made from: make "
                                              "a new one",
                                              (log.directory() / planned.file).string())};
  }
  VERGER_TRY(auto found, patches());
  const auto name = random.uuid().to_string() + std::string(kTemporarySuffix);
  VERGER_TRY(copy,
             detail::ChunkCopy::start(files, source, log.directory() / name, std::move(found)));
  VERGER_FAILPOINT("redaction.copy-started");
  return {};
}

Result<std::vector<BytePatch>> RedactionJob::State::patches() {
  std::vector<BytePatch> all;
  Bytes buffer;
  for (const auto n : plan.chunks[next].records) {
    const auto& planned = plan.records[n];
    VERGER_TRY(const auto record, source->read(planned.position, buffer));
    if (record.prepare() == nullptr || record.prepare()->stream != planned.stream ||
        blanked_digest(record, planned.metadata) != planned.digest) {
      return Error{Errc::kConflict,
                   fmt::format("{}: the record at log position {} is no longer {}: make a new plan",
                               source->path().string(), planned.position,
                               name_of(planned.stream, planned.number))};
    }
    const auto more = patches_of(record, planned.metadata);
    all.insert(all.end(), more.begin(), more.end());
  }
  // Records are by position; so are their places in the file.
  return all;
}

Result<void> RedactionJob::State::finish_copy() {
  VERGER_TRY(md5_of_copy, copy->finish());
  VERGER_TRY(const auto copied, log::Chunk::open_completed(files, copy->path()));
  if (auto checked = check_copy(*copied); !checked) {
    copy->remove();
    return checked;
  }
  digests = std::make_unique<detail::ChunkDigests>(source, copied);
  return {};
}

Result<void> RedactionJob::State::switch_chunk() {
  const auto written = std::move(copy);
  const auto read = std::move(digests);
  VERGER_FAILPOINT("redaction.before-switch");
  auto switched = log.switch_in_chunk(written->path());
  if (!switched) {
    return std::move(switched).error();
  }
  VERGER_FAILPOINT("redaction.after-switch");
  const auto former = source->path();
  done.push_back({.from = former.filename().string(),
                  .to = (*switched)->path().filename().string(),
                  .records = plan.chunks[next].records.size(),
                  .md5_before = source->footer()->md5,
                  .md5_after = md5_of_copy,
                  .digest_before = read->before(),
                  .digest_after = read->after()});
  copied_before += source->file_size();
  source.reset();  // the last that has the former file: it is removed now
  VERGER_RETURN_IF_ERROR(files.sync_directory(log.directory()));
  VERGER_TRY(const bool still_there, files.exists(former));
  if (still_there) {
    return Error{Errc::kIo, fmt::format("{}: is redacted in {}, but the former file could not be "
                                        "removed: remove it, it still holds the data",
                                        former.string(), done.back().to)};
  }
  progress.bytes_done = copied_before;
  progress.records_done += done.back().records;
  ++progress.chunks_done;
  ++next;
  out.info("redacted events of a chunk file", {{"from", done.back().from},
                                               {"to", done.back().to},
                                               {"records", fmt::to_string(done.back().records)}});
  return {};
}

/// The copy reads as it should before it replaces anything.
Result<void> RedactionJob::State::check_copy(const log::Chunk& copied) const {
  Bytes buffer;
  for (const auto n : plan.chunks[next].records) {
    const auto& planned = plan.records[n];
    VERGER_TRY(const auto record, copied.read(planned.position, buffer));
    if (record.prepare() == nullptr || !is_blanked(*record.prepare(), planned.metadata) ||
        blanked_digest(record, planned.metadata) != planned.digest) {
      return Error{Errc::kCorruption,
                   fmt::format("{}: the record at log position {} does not read as redacted; "
                               "nothing was changed",
                               copied.path().string(), planned.position)};
    }
  }
  return {};
}

Result<void> RedactionJob::State::finish() {
  // Removals of the opening are to survive a power cut, too.
  VERGER_RETURN_IF_ERROR(files.sync_directory(log.directory()));
  VERGER_TRY(const auto left, find_leftovers(files, log));
  if (!left.empty()) {
    return Error{Errc::kIo, fmt::format("{}: could not be removed and may hold the data: remove it",
                                        (log.directory() / left.front().name).string())};
  }
  return {};
}

}  // namespace verger::redaction
