#include "engine/redaction/redacted_copy.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/log/chunk.h"
#include "engine/redaction/detail/chunk_copy.h"
#include "engine/redaction/detail/chunk_digests.h"
#include "engine/redaction/leftovers.h"
#include "engine/redaction/record_blanking.h"

namespace verger::redaction {
namespace {

constexpr std::uint64_t kBytesPerCopyStep = 4ULL << 20U;

/// Empty: it may be redacted. What is a server's own is not, and of it a name says enough.
std::string why_not_redacted(const EventName& event, const log::Prepare& prepare) {
  if (event.stream.starts_with('$')) {
    return fmt::format("\"{}\" is a system stream or the metadata of a stream", event.stream);
  }
  if (prepare.has(log::prepare_flags::kStreamDelete)) {
    return "is the tombstone of its stream, which holds no data of a client";
  }
  if (!prepare.has(log::prepare_flags::kData)) {
    return "is a marker of a transaction, not an event";
  }
  return {};
}

/// The record there is one of that event, as far as the record says it: of an explicit transaction
/// the commit has the number.
Result<log::LogRecord> read_at(const log::Chunk& chunk, const RecordPlace& place, Bytes& buffer) {
  VERGER_TRY(const auto record, chunk.read(place.position, buffer));
  const auto* prepare = record.prepare();
  const bool same = prepare != nullptr && prepare->stream == place.event.stream &&
                    record.file_offset == place.file_offset &&
                    (!prepare->has(log::prepare_flags::kIsCommitted) ||
                     prepare->has(log::prepare_flags::kStreamDelete) ||
                     prepare->event_number() == place.event.number);
  if (!same) {
    return Error{Errc::kConflict,
                 fmt::format("{}: {} is not at log position {}, offset {} of the file: this is not "
                             "the directory of the node that answers, or the file was switched",
                             chunk.path().string(), name_of(place.event.stream, place.event.number),
                             place.position, place.file_offset)};
  }
  return record;
}

/// The changes that the request makes, ascending; each record counted in `into`.
Result<std::vector<BytePatch>> changes_of(const log::Chunk& source, CopyRequest& request,
                                          RedactedCopy& into) {
  std::ranges::sort(request.records, {}, &RecordPlace::position);
  const auto repeated = std::ranges::unique(request.records, {}, &RecordPlace::position);
  request.records.erase(repeated.begin(), repeated.end());
  std::vector<BytePatch> changes;
  Bytes buffer;
  for (const auto& place : request.records) {
    VERGER_TRY(const auto record, read_at(source, place, buffer));
    if (const auto reason = why_not_redacted(place.event, *record.prepare()); !reason.empty()) {
      return Error{Errc::kRefused,
                   fmt::format("{}: {}", name_of(place.event.stream, place.event.number), reason)};
    }
    if (is_blanked(*record.prepare(), request.metadata)) {
      ++into.already;
      continue;
    }
    ++into.blanked;
    const auto found = patches_of(record, request.metadata);
    changes.insert(changes.end(), found.begin(), found.end());
  }
  return changes;
}

}  // namespace

struct RedactedCopyJob::State {
  FileSystem& files;
  Random& random;
  CopyRequest request;
  RedactedCopy made{};
  std::shared_ptr<const log::Chunk> source{};
  std::unique_ptr<detail::ChunkCopy> copy{};
  std::unique_ptr<detail::ChunkDigests> digests{};  ///< once all is copied and checked

  /// A copy that was not finished is of no use.
  ~State() {
    if (digests != nullptr) {
      copy->remove();
    }
  }
  Result<std::vector<BytePatch>> patches();
  Result<void> start(std::vector<BytePatch> changes);
  Result<void> check_copy();
  Result<void> finish();
};

RedactedCopyJob::RedactedCopyJob(FileSystem& files, Random& random, CopyRequest request)
    : state_(new State{.files = files, .random = random, .request = std::move(request)}) {}
RedactedCopyJob::~RedactedCopyJob() = default;

const RedactedCopy& RedactedCopyJob::copy() const { return state_->made; }

Result<StepOutcome> RedactedCopyJob::step(Budget /*budget*/) {
  State& state = *state_;
  if (state.copy == nullptr) {
    VERGER_TRY(auto changes, state.patches());
    if (changes.empty()) {
      return StepOutcome{StepOutcome::Kind::kDone, {}};
    }
    VERGER_RETURN_IF_ERROR(state.start(std::move(changes)));
    return StepOutcome{};
  }
  if (state.digests == nullptr) {
    VERGER_TRY(const bool copied, state.copy->step(kBytesPerCopyStep));
    if (copied) {
      VERGER_RETURN_IF_ERROR(state.check_copy());
    }
    return StepOutcome{};
  }
  const auto digested = state.digests->step(kBytesPerCopyStep);
  if (!digested) {
    return digested.error();
  }
  if (!*digested) {
    return StepOutcome{};
  }
  VERGER_RETURN_IF_ERROR(state.finish());
  return StepOutcome{StepOutcome::Kind::kDone, {}};
}

Result<std::vector<BytePatch>> RedactedCopyJob::State::patches() {
  VERGER_TRY(source, log::Chunk::open_completed(files, request.directory / request.chunk_file));
  made.file_size = source->file_size();
  return changes_of(*source, request, made);
}

Result<void> RedactedCopyJob::State::start(std::vector<BytePatch> changes) {
  VERGER_TRY(const auto space, files.space(request.directory));
  if (space.available < made.file_size) {
    return Error{Errc::kNoSpace,
                 fmt::format("{}: {} bytes are free, and the copy of {} needs {}; it was not "
                             "changed: free some space and repeat",
                             request.directory.string(), space.available, request.chunk_file,
                             made.file_size)};
  }
  const auto name = random.uuid().to_string() + std::string(kTemporarySuffix);
  VERGER_TRY(copy,
             detail::ChunkCopy::start(files, source, request.directory / name, std::move(changes)));
  return {};
}

Result<void> RedactedCopyJob::State::check_copy() {
  made.md5_before = source->footer()->md5;
  VERGER_TRY(made.md5_after, copy->finish());
  for (const auto& place : request.records) {
    if (auto checked = check_blanked(files, copy->path(), place, request.metadata); !checked) {
      copy->remove();
      return checked;
    }
  }
  auto copied = log::Chunk::open_completed(files, copy->path());
  if (!copied) {
    copy->remove();
    return copied.error();
  }
  digests = std::make_unique<detail::ChunkDigests>(source, *std::move(copied));
  return {};
}

Result<void> RedactedCopyJob::State::finish() {
  made.digest_before = digests->before();
  made.digest_after = digests->after();
  digests.reset();
  // A switch renames it: its name has to be there before.
  if (auto synced = files.sync_directory(request.directory); !synced) {
    copy->remove();
    return synced;
  }
  made.name = copy->path().filename().string();
  source.reset();
  return {};
}

Result<RedactedCopy> look_at(FileSystem& files, CopyRequest request) {
  VERGER_TRY(const auto source,
             log::Chunk::open_completed(files, request.directory / request.chunk_file));
  RedactedCopy out{.file_size = source->file_size()};
  VERGER_RETURN_IF_ERROR(changes_of(*source, request, out));
  return out;
}

Result<void> check_blanked(FileSystem& files, const Path& chunk_file, const RecordPlace& place,
                           bool metadata) {
  VERGER_TRY(const auto chunk, log::Chunk::open_completed(files, chunk_file));
  Bytes buffer;
  VERGER_TRY(const auto record, read_at(*chunk, place, buffer));
  if (!is_blanked(*record.prepare(), metadata)) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: {} does not read as redacted", chunk_file.string(),
                             name_of(place.event.stream, place.event.number))};
  }
  return {};
}

Result<std::vector<std::string>> remove_copies(FileSystem& files, const Path& directory) {
  VERGER_TRY(const auto entries, files.list(directory));
  std::vector<std::string> removed;
  for (const auto& entry : entries) {
    if (!entry.is_directory && entry.name.ends_with(kTemporarySuffix)) {
      VERGER_RETURN_IF_ERROR(files.remove(directory / entry.name));
      removed.push_back(entry.name);
    }
  }
  if (!removed.empty()) {
    VERGER_RETURN_IF_ERROR(files.sync_directory(directory));
  }
  return removed;
}

}  // namespace verger::redaction
