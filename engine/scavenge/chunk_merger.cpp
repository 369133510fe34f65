#include "engine/scavenge/chunk_merger.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/scavenge/chunk_rewrite.h"

namespace verger::scavenge {
namespace {

constexpr std::size_t kRecordsOfMergeAtOnce = 64;

}  // namespace

struct ChunkMerger::Merge {
  log::ChunkWriter writer;
  std::optional<log::ChunkScanner> scanner;
  std::optional<log::ChunkChecksum> checksum;  ///< of the source
  std::size_t source = 0;
  Monotonic started;
};

ChunkMerger::ChunkMerger(RunContext& context) : context_(context) {
  context_.progress.total = static_cast<std::uint64_t>(context_.parts.log.end().value());
}

ChunkMerger::~ChunkMerger() = default;

Result<StepOutcome> ChunkMerger::step(Budget budget) {
  auto stopped = context_.check_stop();
  if (!stopped) {
    if (merge_ != nullptr) {
      report_failure({Errc::kCancelled, "Scavenge cancelled"});
    }
    return stopped.error();
  }
  if (!context_.options.merge_chunks) {
    return StepOutcome{StepOutcome::Kind::kDone, {}};
  }
  if (merge_ != nullptr) {
    auto copied = copy(budget.units);
    if (!copied) {
      report_failure(copied.error());
    } else if (*copied) {
      VERGER_RETURN_IF_ERROR(finish_merge());
    }
    return StepOutcome{};
  }
  if (!chosen_.empty()) {
    start_merge();
    return StepOutcome{};
  }
  VERGER_TRY(const bool more, examine());
  if (!more) {
    if (!merged_in_pass_) {
      return StepOutcome{StepOutcome::Kind::kDone, {}};
    }
    merged_in_pass_ = false;
    pass_ended_ = false;
    next_ = LogPosition(0);
    return StepOutcome{};
  }
  if (const auto rest = context_.throttle.rest_due(); rest.count() > 0) {
    return StepOutcome{StepOutcome::Kind::kRest, rest};
  }
  return StepOutcome{};
}

Result<bool> ChunkMerger::examine() {
  if (pass_ended_) {
    return false;
  }
  const auto& log = context_.parts.log;
  auto chunk = next_ < log.end() ? log.chunk_at(next_) : nullptr;
  // What another leader may yet truncate is not merged with what stays: a scavenged chunk can only
  // be cut off whole.
  if (chunk == nullptr || !chunk->completed() || chunk->end_position() > log.checkpoints().chaser) {
    pass_ended_ = true;
    close_group();
    return true;
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
  return true;
}

void ChunkMerger::close_group() {
  if (group_.size() > 1) {
    chosen_ = std::move(group_);
  }
  group_.clear();
  group_size_ = 0;
}

void ChunkMerger::start_merge() {
  auto& parts = context_.parts;
  const auto header = scavenged_header(parts.log, chosen_.front()->start(), chosen_.back()->end(),
                                       parts.random.uuid());
  auto writer = log::ChunkWriter::create(parts.files, parts.log.directory(),
                                         parts.random.uuid().to_string() + ".merge.scavenge.tmp",
                                         header, context_.options.hash_in_background);
  if (!writer) {
    // Like the server: a line in the log, no event.
    parts.out.error(fmt::format("SCAVENGING: cannot merge chunks {}-{}: {}", header.start,
                                header.end, writer.error().message));
    chosen_.clear();
    return;
  }
  merge_ = std::make_unique<Merge>(Merge{.writer = *std::move(writer),
                                         .scanner = {},
                                         .checksum = {},
                                         .source = 0,
                                         .started = parts.clock.monotonic()});
}

Result<bool> ChunkMerger::copy(std::uint32_t records) {
  std::size_t bytes = 0;
  for (std::uint32_t n = 0; n < records && bytes < kMostCopiedAtOnce; ++n) {
    if (!merge_->scanner) {
      if (merge_->source == chosen_.size()) {
        return true;
      }
      const auto& source = chosen_[merge_->source++];
      VERGER_TRY(merge_->scanner, log::ChunkScanner::open(source, source->start_position()));
      if (context_.is_unchecked(*source)) {
        merge_->checksum.emplace(source, context_.options.hash_in_background);
      }
    }
    VERGER_TRY(const auto batch, merge_->scanner->next_batch(
                                     std::min<std::size_t>(kRecordsOfMergeAtOnce, records - n)));
    if (batch.empty()) {
      if (merge_->checksum) {
        VERGER_RETURN_IF_ERROR(merge_->checksum->finish());
        merge_->checksum.reset();
      }
      merge_->scanner.reset();
      continue;
    }
    for (const auto& record : batch) {
      bytes += record.framed.size();
      if (merge_->checksum) {
        VERGER_RETURN_IF_ERROR(merge_->checksum->add(record));
      }
      VERGER_RETURN_IF_ERROR(merge_->writer.append(record.position(), record.framed));
    }
    n += static_cast<std::uint32_t>(batch.size()) - 1;
  }
  return false;
}

Result<void> ChunkMerger::finish_merge() {
  auto finished = merge_->writer.finish();
  if (!finished) {
    report_failure(finished.error());
    return {};
  }
  ChunksMerged event;
  event.start = chosen_.front()->start().value();
  event.end = chosen_.back()->end().value();
  event.merged = true;
  for (const auto& chunk : chosen_) {
    event.space_saved += static_cast<std::int64_t>(chunk->file_size());
  }
  event.space_saved -= static_cast<std::int64_t>(finished->file_size);
  // Whether the new file is in place is not known after an error here: that ends the run.
  VERGER_TRY(const auto chunk, context_.parts.log.switch_in_chunk(finished->path));
  context_.note_sound(*chunk);
  VERGER_FAILPOINT("scavenge.merge.after-switch");
  event.time_taken = (context_.parts.clock.monotonic() - merge_->started).count() / 100;
  merge_.reset();
  chosen_.clear();
  merged_in_pass_ = true;
  ++context_.progress.groups_merged;
  context_.progress.space_saved += event.space_saved;
  context_.parts.out.debug(fmt::format("SCAVENGING: merged chunks {}-{}", event.start, event.end));
  context_.events.chunks_merged(event);
  return context_.unit_finished(Stage::kMergingChunks, ++groups_);
}

void ChunkMerger::report_failure(const Error& error) {
  ChunksMerged event;
  event.start = chosen_.front()->start().value();
  event.end = chosen_.back()->end().value();
  event.time_taken = (context_.parts.clock.monotonic() - merge_->started).count() / 100;
  event.error = error.message;
  merge_.reset();
  chosen_.clear();
  context_.parts.out.warning(fmt::format("SCAVENGING: chunks {}-{} were not merged: {}",
                                         event.start, event.end, error.message));
  context_.events.chunks_merged(event);
}

}  // namespace verger::scavenge
