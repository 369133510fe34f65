#include "engine/log/detail/truncation.h"

#include <algorithm>
#include <fmt/format.h>
#include <ranges>

#include "engine/base/failpoint.h"
#include "engine/log/detail/limits.h"

namespace verger::log::detail {
namespace {

/// Every live chunk that opens, for a look at the chain of epochs.
std::vector<std::shared_ptr<const Chunk>> all_readable(FileSystem& files, const Path& directory,
                                                       const LiveFiles& live, LogPosition writer,
                                                       std::int32_t chunk_size) {
  std::vector<std::shared_ptr<const Chunk>> chunks;
  for (const auto& one : live.latest) {
    const auto start = std::int64_t{one.file.start.value()} * chunk_size;
    const bool last = start <= writer.value() && writer.value() < start + chunk_size;
    const Path path = directory / one.file.name;
    auto chunk = last ? Chunk::open_active(files, path, writer.value() - start)
                      : Chunk::open_completed(files, path);
    if (chunk && (*chunk)->header().chunk_size == chunk_size) {
      chunks.push_back(*std::move(chunk));
    }
  }
  return chunks;
}

/// The newest epoch record below `target`. -1 where the chain cannot be followed: opening then
/// looks for it. The server writes -1 whenever epoch.chk is not below, and then cannot start when
/// the log ends on a chunk boundary.
LogPosition epoch_below(const std::vector<std::shared_ptr<const Chunk>>& chunks, LogPosition newest,
                        LogPosition target) {
  if (newest < target) {
    return newest;
  }
  const auto epochs = follow_epochs(chunks, newest);
  if (!epochs) {
    return kNoPosition;
  }
  auto kept = *epochs;
  kept.truncate(target);
  const auto last = kept.last();
  return last ? last->position : kNoPosition;
}

}  // namespace

Result<TruncationPlan> plan_truncation(FileSystem& files, const Path& directory,
                                       const Snapshot& snapshot, const LogOptions& options,
                                       LogPosition position) {
  const auto values = snapshot.checkpoints.values();
  const auto where = (directory / "truncate.chk").string();
  const auto size = snapshot.checkpoints.file_size(Checkpoint::kTruncate);
  if (position.value() < 0) {
    return Error{Errc::kCorruption, fmt::format("{}: {} is not a log position; write -1 (eight "
                                                "bytes ff) there to truncate nothing",
                                                where, position)};
  }
  if (size && *size < 8) {
    // The server takes an empty file for 0 and throws the whole log away.
    return Error{Errc::kCorruption,
                 fmt::format("{}: has {} bytes instead of 8, which would mean to truncate the log "
                             "to {}; remove it, or write the position meant",
                             where, *size, position)};
  }
  VERGER_TRY(const auto chunk_size, chunk_size_of(files, directory, snapshot.listing, options));
  const auto writer_chunk = values.writer.value() / chunk_size;
  const auto number = position.value() / chunk_size;
  if (values.writer.value() < 0 || writer_chunk >= kMaxChunkCount || number >= kMaxChunkCount) {
    return Error{
        Errc::kCorruption,
        fmt::format("{}: cannot truncate to {}: no database is that long", where, position)};
  }
  if (position > values.writer) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: cannot truncate to {}, the log ends at {} (writer.chk); remove "
                             "truncate.chk, or restore both from the same backup",
                             where, position, values.writer)};
  }
  const auto& listed = snapshot.listing.chunks;
  if (std::ranges::any_of(
          listed, [&](const auto& file) { return file.start.value() == writer_chunk + 1; })) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: cannot truncate to {}: chunk {} exists although writer.chk ({}) "
                             "says that the log ends before it; restore both from the same backup",
                             where, position, writer_chunk + 1, values.writer)};
  }
  VERGER_TRY(const auto live, find_live_files(files, directory, listed));
  const LiveFiles::Live* covering = nullptr;
  std::int64_t covered = 0;
  for (const auto& one : live.latest) {
    if (one.file.start.value() > number) {
      break;
    }
    if (one.file.start.value() > covered) {
      break;
    }
    covered = std::int64_t{one.end.value()} + 1;
    if (covered > number) {
      covering = &one;
      break;
    }
    VERGER_CHECK(open_live_chunk(files, directory, one, chunk_size));
  }
  if (covering == nullptr && covered < number) {
    return missing_chunk(directory, ChunkNumber(static_cast<std::int32_t>(covered)), chunk_size);
  }

  TruncationPlan plan;
  plan.target = position;
  auto first_removed = number;
  if (covering != nullptr) {
    const Path path = directory / covering->file.name;
    VERGER_TRY(const auto header, read_chunk_header(files, path));
    if (header.chunk_size != chunk_size) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("{}: was written with chunk size {}, the database is opened with {}",
                               path.string(), header.chunk_size, chunk_size)};
    }
    if (header.scavenged) {
      plan.target = LogPosition(std::int64_t{covering->file.start.value()} * chunk_size);
      first_removed = covering->file.start.value();
    } else if (position.value() % chunk_size != 0) {
      first_removed = number + 1;
      plan.cut = covering->file.name;
      plan.keep = position.value() % chunk_size;
      plan.cut_size = align_chunk_file(kChunkHeaderSize + static_cast<std::uint64_t>(chunk_size) +
                                       kChunkFooterSize);
      VERGER_TRY(const auto cut, Chunk::open_active(files, path, plan.keep));
      Bytes buffer;
      if (auto before = cut->read_before(position, buffer); !before) {
        return before.error().within(
            fmt::format("{}: cannot truncate to {}: no record ends there", where, position));
      }
    }
    // Once the covering chunk is gone nothing more can be lost: a truncation that was interrupted
    // there goes on whatever the limit.
    if (options.max_truncation >= 0 && values.writer - position > options.max_truncation) {
      return Error{Errc::kRefused,
                   fmt::format("{}: truncating to {} would cut {} bytes off the log, the limit is "
                               "{}; raise the limit if that is meant, or remove truncate.chk",
                               where, position, values.writer - position, options.max_truncation)};
    }
  }
  plan.first_removed = ChunkNumber(static_cast<std::int32_t>(first_removed));
  for (const auto& file : std::views::reverse(listed)) {
    if (file.start.value() >= first_removed) {
      plan.remove.push_back(file.name);
    }
  }
  plan.writer = std::min(values.writer, plan.target);
  plan.chaser = std::min(values.chaser, plan.target);
  plan.epoch = epoch_below(all_readable(files, directory, live, values.writer, chunk_size),
                           values.epoch, plan.target);
  return plan;
}

Result<void> carry_out(FileSystem& files, const Path& directory, CheckpointFiles& checkpoints,
                       const TruncationPlan& plan) {
  // From here until truncate.chk is -1 again every opening for writing starts this over. It holds
  // the target itself: after the removal of a scavenged chunk the position asked for would mean
  // something else.
  VERGER_CHECK(checkpoints.store(Checkpoint::kTruncate, plan.target.value()));
  // From the highest down: what a crash leaves has no gap.
  for (const auto& name : plan.remove) {
    const auto removed = files.remove(directory / name);
    if (!removed && removed.error().code != Errc::kNotFound) {
      return removed;
    }
  }
  VERGER_CHECK(files.sync_directory(directory));
  VERGER_FAILPOINT("log.truncate.after-delete");
  if (plan.cut) {
    const Path path = directory / *plan.cut;
    VERGER_CHECK(files.set_read_only(path, false));
    VERGER_TRY(const auto file, files.open(path, OpenMode::kReadWrite));
    // Cut and extended again, so that everything behind, an old footer too, is zero. In between the
    // file is as long as its records, which opening accepts.
    VERGER_CHECK(file->resize(kChunkHeaderSize + static_cast<std::uint64_t>(plan.keep)));
    VERGER_CHECK(file->resize(plan.cut_size));
    VERGER_CHECK(file->sync());
  }
  VERGER_FAILPOINT("log.truncate.before-checkpoints");
  // Readers' checkpoints before the writer's: none may ever lie above it.
  VERGER_CHECK(checkpoints.store(Checkpoint::kEpoch, plan.epoch.value()));
  VERGER_CHECK(checkpoints.store(Checkpoint::kChaser, plan.chaser.value()));
  VERGER_CHECK(checkpoints.store(Checkpoint::kWriter, plan.writer.value()));
  return checkpoints.store(Checkpoint::kTruncate, -1);
}

}  // namespace verger::log::detail
