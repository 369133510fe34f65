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

}  // namespace

/// One group on its way into one file. Its step() is independent of other merges.
struct ChunkMerger::Merge {
  /// `unchecked[n]`: the n-th source is to be compared with its checksum.
  Merge(Group chunks, std::vector<bool> unchecked, log::ChunkWriter output, bool hash_in_background,
        Monotonic now)
      : group(std::move(chunks)),
        started(now),
        unchecked_(std::move(unchecked)),
        writer_(std::move(output)),
        hash_in_background_(hash_in_background) {}

  /// Continues for about `records` records, or some megabytes; true once the file is complete.
  Result<bool> step(std::uint32_t records);

  Group group;
  Monotonic started;
  Result<bool> outcome = false;  ///< of the latest step
  std::optional<log::ChunkWriter::Finished> finished;

 private:
  std::vector<bool> unchecked_;
  log::ChunkWriter writer_;
  bool hash_in_background_;
  std::optional<log::ChunkScanner> scanner_;
  std::optional<log::ChunkChecksum> checksum_;  ///< of the source
  std::size_t source_ = 0;
};

Result<bool> ChunkMerger::Merge::step(std::uint32_t records) {
  std::size_t bytes = 0;
  for (std::uint32_t n = 0; n < records && bytes < kMostCopiedAtOnce; ++n) {
    if (!scanner_) {
      if (source_ == group.size()) {
        VERGER_TRY(finished, writer_.finish());
        return true;
      }
      const auto& chunk = group[source_];
      VERGER_TRY(scanner_, log::ChunkScanner::open(chunk, chunk->start_position()));
      if (unchecked_[source_++]) {
        checksum_.emplace(chunk, hash_in_background_);
      }
    }
    VERGER_TRY(const auto batch,
               scanner_->next_batch(std::min<std::size_t>(kRecordsOfMergeAtOnce, records - n)));
    if (batch.empty()) {
      if (checksum_) {
        VERGER_RETURN_IF_ERROR(checksum_->finish());
        checksum_.reset();
      }
      scanner_.reset();
      continue;
    }
    for (const auto& record : batch) {
      bytes += record.framed.size();
      if (checksum_) {
        VERGER_RETURN_IF_ERROR(checksum_->add(record));
      }
      VERGER_RETURN_IF_ERROR(writer_.append(record.position(), record.framed));
    }
    n += static_cast<std::uint32_t>(batch.size()) - 1;
  }
  return false;
}

ChunkMerger::ChunkMerger(RunContext& context, ParallelRunner& runner)
    : context_(context), runner_(runner) {
  context_.progress.total = static_cast<std::uint64_t>(context_.parts.log.end().value());
}

ChunkMerger::~ChunkMerger() = default;

Result<StepOutcome> ChunkMerger::step(Budget budget) {
  auto stopped = context_.check_stop();
  if (!stopped) {
    for (const auto& merge : std::exchange(merges_, {})) {
      report_failure(*merge, {Errc::kCancelled, "Scavenge cancelled"});
    }
    return stopped.error();
  }
  if (!context_.options.merge_chunks) {
    return StepOutcome{StepOutcome::Kind::kDone, {}};
  }
  const auto most = static_cast<std::size_t>(context_.options.threads);
  if (!merges_.empty() && (merges_.size() >= most || pass_ended_)) {
    VERGER_RETURN_IF_ERROR(copy(budget.units));
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
                                         header, context_.options.hash_in_background);
  if (!writer) {
    // Like the server: a line in the log, no event.
    parts.out.error(fmt::format("SCAVENGING: cannot merge chunks {}-{}: {}", header.start,
                                header.end, writer.error().message));
    return;
  }
  std::vector<bool> unchecked;
  unchecked.reserve(group.size());
  for (const auto& chunk : group) {
    unchecked.push_back(context_.is_unchecked(*chunk));
  }
  merges_.push_back(std::make_unique<Merge>(std::move(group), std::move(unchecked),
                                            *std::move(writer), context_.options.hash_in_background,
                                            parts.clock.monotonic()));
}

Result<void> ChunkMerger::copy(std::uint32_t records) {
  std::vector<std::function<void()>> pieces;
  pieces.reserve(merges_.size());
  for (const auto& merge : merges_) {
    pieces.emplace_back([&merge, records] { merge->outcome = merge->step(records); });
  }
  runner_.run(pieces);
  std::vector<std::unique_ptr<Merge>> ended;
  for (auto& merge : merges_) {
    if (!merge->outcome || *merge->outcome) {
      ended.push_back(std::move(merge));
    }
  }
  std::erase(merges_, nullptr);
  for (const auto& merge : ended) {
    if (!merge->outcome) {
      report_failure(*merge, merge->outcome.error());
    } else {
      VERGER_RETURN_IF_ERROR(finish(*merge));
    }
  }
  return {};
}

Result<void> ChunkMerger::finish(Merge& merge) {
  ChunksMerged event;
  event.start = merge.group.front()->start().value();
  event.end = merge.group.back()->end().value();
  event.merged = true;
  for (const auto& chunk : merge.group) {
    event.space_saved += static_cast<std::int64_t>(chunk->file_size());
  }
  event.space_saved -= static_cast<std::int64_t>(merge.finished->file_size);
  // Whether the new file is in place is not known after an error here: that ends the run.
  VERGER_TRY(const auto chunk, context_.parts.log.switch_in_chunk(merge.finished->path));
  context_.note_sound(*chunk);
  VERGER_FAILPOINT("scavenge.merge.after-switch");
  event.time_taken = (context_.parts.clock.monotonic() - merge.started).count() / 100;
  merged_in_pass_ = true;
  ++context_.progress.groups_merged;
  context_.progress.space_saved += event.space_saved;
  context_.parts.out.debug(fmt::format("SCAVENGING: merged chunks {}-{}", event.start, event.end));
  context_.events.chunks_merged(event);
  return context_.unit_finished(Stage::kMergingChunks, ++groups_);
}

void ChunkMerger::report_failure(const Merge& merge, const Error& error) {
  ChunksMerged event;
  event.start = merge.group.front()->start().value();
  event.end = merge.group.back()->end().value();
  event.time_taken = (context_.parts.clock.monotonic() - merge.started).count() / 100;
  event.error = error.message;
  context_.parts.out.warning(fmt::format("SCAVENGING: chunks {}-{} were not merged: {}",
                                         event.start, event.end, error.message));
  context_.events.chunks_merged(event);
}

}  // namespace verger::scavenge
