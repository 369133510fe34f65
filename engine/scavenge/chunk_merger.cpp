#include "engine/scavenge/chunk_merger.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <utility>

#include "engine/base/failpoint.h"
#include "engine/scavenge/chunk_rewrite.h"

namespace verger::scavenge {
namespace {

constexpr std::size_t kRecordsOfMergeAtOnce = 64;
constexpr std::size_t kBytesOfMergeAtOnce = std::size_t{256} << 10U;

}  // namespace

/// One group on its way into one file. Independent of other merges.
struct ChunkMerger::Merge {
  struct Source {
    std::shared_ptr<const log::Chunk> chunk;
    bool unchecked = false;  ///< it is to be compared with its checksum
    bool own = false;        ///< this run has written it
  };
  /// `hasher`: hashes what is read of sources, too; nullptr: copy() does.
  Merge(std::vector<Source> chunks, log::ChunkWriter output, std::shared_ptr<Md5Thread> hasher,
        Monotonic now)
      : sources(std::move(chunks)),
        started(now),
        writer_(std::move(output)),
        hasher_(std::move(hasher)) {}

  /// Continues for about `records` records, or some megabytes; true once all records are copied.
  Result<bool> copy(std::uint32_t records);
  /// The new file gets its map, footer and checksum, and is on the disk.
  Result<void> finish() {
    VERGER_TRY(finished, writer_.finish());
    return {};
  }
  [[nodiscard]] const log::Chunk& first() const { return *sources.front().chunk; }
  [[nodiscard]] const log::Chunk& last() const { return *sources.back().chunk; }

  std::vector<Source> sources;
  Monotonic started;
  log::ChunkWriter::Finished finished;

 private:
  /// How much one call has copied; no records: the source has ended.
  struct Copied {
    std::size_t records = 0;
    std::size_t bytes = 0;
  };
  Result<void> open_source();
  /// Reads record by record.
  Result<Copied> copy_records(std::size_t most);
  /// The same of a chunk of which it is known what is in it: its bytes, as they are.
  Result<Copied> copy_bytes(std::size_t most);

  log::ChunkWriter writer_;
  std::shared_ptr<Md5Thread> hasher_;
  std::size_t source_ = 0;                               ///< of the next one
  std::optional<log::ChunkScanner> scanner_;             ///< of the current one
  std::optional<log::ChunkChecksum> checksum_;           ///< of the current one
  std::optional<std::vector<log::PosmapEntry>> posmap_;  ///< of the current one, if it is our own
  std::size_t copied_ = 0;                               ///< entries of it
  Bytes bytes_;
};

Result<void> ChunkMerger::Merge::open_source() {
  const auto& [chunk, unchecked, own] = sources[source_++];
  if (own) {
    copied_ = 0;
    VERGER_TRY(posmap_, chunk->posmap());
    return {};
  }
  VERGER_TRY(scanner_, log::ChunkScanner::open(chunk, chunk->start_position()));
  if (unchecked) {
    checksum_.emplace(chunk, hasher_);
  }
  return {};
}

Result<bool> ChunkMerger::Merge::copy(std::uint32_t records) {
  std::size_t bytes = 0;
  for (std::size_t n = 0; n < records && bytes < kMostCopiedAtOnce;) {
    if (!scanner_ && !posmap_) {
      if (source_ == sources.size()) {
        return true;
      }
      VERGER_RETURN_IF_ERROR(open_source());
    }
    VERGER_TRY(const auto copied, posmap_ ? copy_bytes(records - n) : copy_records(records - n));
    if (copied.records == 0) {
      if (checksum_) {
        VERGER_RETURN_IF_ERROR(checksum_->finish());
        checksum_.reset();
      }
      scanner_.reset();
      posmap_.reset();
    }
    n += std::max<std::size_t>(copied.records, 1);
    bytes += copied.bytes;
  }
  return false;
}

Result<ChunkMerger::Merge::Copied> ChunkMerger::Merge::copy_records(std::size_t most) {
  VERGER_TRY(const auto batch, scanner_->next_batch(std::min(kRecordsOfMergeAtOnce, most)));
  Copied copied{.records = batch.size()};
  for (const auto& record : batch) {
    copied.bytes += record.framed.size();
    if (checksum_) {
      VERGER_RETURN_IF_ERROR(checksum_->add(record));
    }
    VERGER_RETURN_IF_ERROR(writer_.append(record.position(), record.framed));
  }
  return copied;
}

Result<ChunkMerger::Merge::Copied> ChunkMerger::Merge::copy_bytes(std::size_t most) {
  const auto& chunk = *sources[source_ - 1].chunk;
  const auto left = std::span(*posmap_).subspan(copied_);
  if (left.empty()) {
    return Copied{};
  }
  const auto begin = left.front().actual;
  Copied copied;
  while (copied.records < std::min(most, left.size()) && copied.bytes < kBytesOfMergeAtOnce) {
    ++copied.records;
    const auto end = copied.records < left.size() ? left[copied.records].actual : chunk.data_size();
    copied.bytes = static_cast<std::size_t>(end - begin);
  }
  bytes_.resize(copied.bytes);
  VERGER_RETURN_IF_ERROR(
      chunk.read_raw(static_cast<std::uint64_t>(log::kChunkHeaderSize + begin), bytes_));
  VERGER_RETURN_IF_ERROR(
      writer_.append_copied(chunk.start_position(), left.first(copied.records), bytes_));
  copied_ += copied.records;
  return copied;
}

ChunkMerger::ChunkMerger(RunContext& context, ParallelRunner& runner)
    : context_(context), files_(context, runner) {
  context_.progress.total = static_cast<std::uint64_t>(context_.parts.log.end().value());
}

ChunkMerger::~ChunkMerger() = default;

Result<StepOutcome> ChunkMerger::step(Budget budget) {
  auto stopped = context_.check_stop();
  if (!stopped) {
    report_all_cancelled();
    return stopped.error();
  }
  if (!context_.options.merge_chunks) {
    return StepOutcome{StepOutcome::Kind::kDone, {}};
  }
  if (!files_.empty() && (pass_ended_ || !files_.allows_another(/*finished=*/0))) {
    files_.copy(budget.units, [](const Merge&) {});
    VERGER_RETURN_IF_ERROR(switch_in_finished());
    return StepOutcome{};
  }
  if (pass_ended_) {
    if (!merged_in_pass_) {
      return StepOutcome{StepOutcome::Kind::kDone, {}};
    }
    merged_in_pass_ = false;
    pass_ended_ = false;
    next_ = LogPosition(0);
    return StepOutcome{};
  }
  VERGER_RETURN_IF_ERROR(examine());
  if (const auto rest = context_.throttle.rest_due(); rest.count() > 0) {
    return StepOutcome{StepOutcome::Kind::kRest, rest};
  }
  return StepOutcome{};
}

Result<void> ChunkMerger::examine() {
  const auto& log = context_.parts.log;
  auto chunk = next_ < log.end() ? log.chunk_at(next_) : nullptr;
  // What another leader may yet truncate is not merged with what stays: a scavenged chunk can only
  // be cut off whole.
  if (chunk == nullptr || !chunk->completed() || chunk->end_position() > log.checkpoints().chaser) {
    pass_ended_ = true;
    close_group();
    return {};
  }
  next_ = chunk->end_position();
  context_.progress.done = static_cast<std::uint64_t>(chunk->start_position().value());
  const std::int64_t size = chunk->footer()->physical_data_size;
  if (size > log.chunk_size()) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: holds {} bytes of records, more than a chunk's {}",
                             chunk->path().string(), size, log.chunk_size())};
  }
  if (group_size_ + size > log.chunk_size()) {
    close_group();
  }
  group_.push_back(std::move(chunk));
  group_size_ += size;
  return {};
}

void ChunkMerger::close_group() {
  auto group = std::exchange(group_, {});
  group_size_ = 0;
  if (group.size() > 1) {
    start_merge(std::move(group));
  }
}

void ChunkMerger::start_merge(Group group) {
  auto& parts = context_.parts;
  const auto header =
      scavenged_header(parts.log, group.front()->start(), group.back()->end(), parts.random.uuid());
  auto writer = log::ChunkWriter::create(parts.files, parts.log.directory(),
                                         parts.random.uuid().to_string() + ".merge.scavenge.tmp",
                                         header, files_.at_once().hasher());
  if (!writer) {
    // Like the server: a line in the log, no event.
    parts.out.error(fmt::format("SCAVENGING: cannot merge chunks {}-{}: {}", header.start,
                                header.end, writer.error().message));
    return;
  }
  std::vector<Merge::Source> sources;
  sources.reserve(group.size());
  for (auto& chunk : group) {
    const bool unchecked = context_.is_unchecked(*chunk);
    const bool own = context_.is_own(*chunk);
    sources.push_back({.chunk = std::move(chunk), .unchecked = unchecked, .own = own});
  }
  files_.add(std::make_unique<Merge>(std::move(sources), *std::move(writer),
                                     files_.at_once().hasher(), parts.clock.monotonic()));
}

Result<void> ChunkMerger::switch_in_finished() {
  for (bool first = true; auto taken = files_.take(/*may_wait=*/first); first = false) {
    if (taken->outcome) {
      VERGER_RETURN_IF_ERROR(switch_in(*taken->file));
    } else {
      report_failure(*taken->file, taken->outcome.error());
    }
    context_.release(std::move(taken->file));
  }
  return {};
}

Result<void> ChunkMerger::switch_in(const Merge& merge) {
  ChunksMerged event;
  event.start = merge.first().start().value();
  event.end = merge.last().end().value();
  event.merged = true;
  for (const auto& source : merge.sources) {
    event.space_saved += static_cast<std::int64_t>(source.chunk->file_size());
  }
  event.space_saved -= static_cast<std::int64_t>(merge.finished.file_size);
  // Whether the new file is in place is not known after an error here: that ends the run.
  VERGER_TRY(const auto chunk, context_.parts.log.switch_in_chunk(merge.finished.path));
  context_.note_own(*chunk);
  VERGER_FAILPOINT("scavenge.merge.after-switch");
  event.time_taken = (context_.parts.clock.monotonic() - merge.started).count() / 100;
  merged_in_pass_ = true;
  ++context_.progress.groups_merged;
  context_.progress.space_saved += event.space_saved;
  context_.parts.out.debug(fmt::format("SCAVENGING: merged chunks {}-{}", event.start, event.end));
  context_.events.chunks_merged(event);
  return context_.unit_finished(Stage::kMergingChunks, ++groups_);
}

void ChunkMerger::report_all_cancelled() {
  const Error cancelled{Errc::kCancelled, "Scavenge cancelled"};
  for (const auto& merge : files_.take_all()) {
    report_failure(*merge, cancelled);
  }
}

void ChunkMerger::report_failure(const Merge& merge, const Error& error) {
  ChunksMerged event;
  event.start = merge.first().start().value();
  event.end = merge.last().end().value();
  event.time_taken = (context_.parts.clock.monotonic() - merge.started).count() / 100;
  event.error = error.message;
  context_.parts.out.warning(fmt::format("SCAVENGING: chunks {}-{} were not merged: {}",
                                         event.start, event.end, error.message));
  context_.events.chunks_merged(event);
}

}  // namespace verger::scavenge
