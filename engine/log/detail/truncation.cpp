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

/// What truncate.chk demands, and what the messages need to say about it.
struct CutRequest {
  const Path& directory;
  LogPosition position;
  std::int32_t chunk_size = 0;

  [[nodiscard]] std::string where() const { return (directory / "truncate.chk").string(); }
  [[nodiscard]] std::int64_t chunk() const { return position.value() / chunk_size; }
};

/// That the position is one, and was meant.
Result<void> check_value(const Path& directory, const Snapshot& snapshot, LogPosition position) {
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
  return {};
}

/// That it lies in the log whose end writer.chk gives.
Result<void> check_against_log(const CutRequest& request, const Snapshot& snapshot) {
  const auto writer = snapshot.checkpoints.values().writer;
  const auto writer_chunk = writer.value() / request.chunk_size;
  if (writer.value() < 0 || writer_chunk >= kMaxChunkCount || request.chunk() >= kMaxChunkCount) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: cannot truncate to {}: no database is that long; write -1 (eight "
                             "bytes ff) there to truncate nothing",
                             request.where(), request.position)};
  }
  if (request.position > writer) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: cannot truncate to {}, the log ends at {} (writer.chk); remove "
                             "truncate.chk, or restore both from the same backup",
                             request.where(), request.position, writer)};
  }
  if (std::ranges::any_of(snapshot.listing.chunks, [&](const auto& file) {
        return file.start.value() == writer_chunk + 1;
      })) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: cannot truncate to {}: chunk {} exists although writer.chk ({}) "
                             "says that the log ends before it; restore both from the same backup",
                             request.where(), request.position, writer_chunk + 1, writer)};
  }
  return {};
}

/// The file that holds the position; nullptr: it begins a chunk that is not there. All files below
/// it open, without a gap.
Result<const LiveFiles::Live*> find_covering(FileSystem& files, const CutRequest& request,
                                             const LiveFiles& live) {
  std::int64_t covered = 0;
  for (const auto& one : live.latest) {
    if (one.file.start.value() > request.chunk() || one.file.start.value() > covered) {
      break;
    }
    covered = std::int64_t{one.end.value()} + 1;
    if (covered > request.chunk()) {
      return &one;
    }
    VERGER_RETURN_IF_ERROR(open_live_chunk(files, request.directory, one, request.chunk_size));
  }
  if (covered < request.chunk()) {
    return missing_chunk(request.directory, ChunkNumber(static_cast<std::int32_t>(covered)),
                         request.chunk_size);
  }
  return nullptr;
}

/// A scavenged file goes as a whole, any other is cut. Returns the number of the first chunk to
/// remove.
Result<std::int64_t> plan_cut(FileSystem& files, const CutRequest& request,
                              const LiveFiles::Live& covering, TruncationPlan& plan) {
  const Path path = request.directory / covering.file.name;
  VERGER_TRY(const auto header, read_chunk_header(files, path));
  if (header.chunk_size != request.chunk_size) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: was written with chunk size {}, the database is opened with {}",
                             path.string(), header.chunk_size, request.chunk_size)};
  }
  if (header.scavenged) {
    plan.target = LogPosition(std::int64_t{covering.file.start.value()} * request.chunk_size);
    return covering.file.start.value();
  }
  if (request.position.value() % request.chunk_size == 0) {
    return request.chunk();
  }
  plan.cut = covering.file.name;
  plan.keep = request.position.value() % request.chunk_size;
  plan.cut_size = align_chunk_file(
      kChunkHeaderSize + static_cast<std::uint64_t>(request.chunk_size) + kChunkFooterSize);
  VERGER_TRY(const auto cut, Chunk::open_active(files, path, plan.keep));
  Bytes buffer;
  if (auto before = cut->read_before(request.position, buffer); !before) {
    return before.error().within(fmt::format("{}: cannot truncate to {}: no record ends there",
                                             request.where(), request.position));
  }
  return request.chunk() + 1;
}

}  // namespace

Result<TruncationPlan> plan_truncation(FileSystem& files, const Path& directory,
                                       const Snapshot& snapshot, const LogOptions& options,
                                       LogPosition position) {
  VERGER_RETURN_IF_ERROR(check_value(directory, snapshot, position));
  VERGER_TRY(const auto chunk_size, chunk_size_of(files, directory, snapshot.listing, options));
  const CutRequest request{directory, position, chunk_size};
  VERGER_RETURN_IF_ERROR(check_against_log(request, snapshot));
  const auto values = snapshot.checkpoints.values();
  const auto& listed = snapshot.listing.chunks;
  VERGER_TRY(const auto live, find_live_files(files, directory, listed));
  VERGER_TRY(const auto* const covering, find_covering(files, request, live));

  TruncationPlan plan;
  plan.target = position;
  auto first_removed = request.chunk();
  if (covering != nullptr) {
    VERGER_TRY(first_removed, plan_cut(files, request, *covering, plan));
    // Once the covering chunk is gone nothing more can be lost: a truncation that was interrupted
    // there continues regardless of the limit.
    if (options.max_truncation >= 0 && values.writer - position > options.max_truncation) {
      return Error{
          Errc::kRefused,
          fmt::format("{}: truncating to {} would cut {} bytes off the log, the limit is "
                      "{}; raise the limit if that is meant, or remove truncate.chk",
                      request.where(), position, values.writer - position, options.max_truncation)};
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
  // the target itself: after the removal of a scavenged chunk the requested position would mean
  // something else.
  VERGER_RETURN_IF_ERROR(checkpoints.store(Checkpoint::kTruncate, plan.target.value()));
  // From the highest down: what a crash leaves has no gap.
  for (const auto& name : plan.remove) {
    const auto removed = files.remove(directory / name);
    if (!removed && removed.error().code != Errc::kNotFound) {
      return removed;
    }
  }
  VERGER_RETURN_IF_ERROR(files.sync_directory(directory));
  VERGER_FAILPOINT("log.truncate.after-delete");
  if (plan.cut) {
    const Path path = directory / *plan.cut;
    VERGER_RETURN_IF_ERROR(files.set_read_only(path, false));
    VERGER_TRY(const auto file, files.open(path, OpenMode::kReadWrite));
    // Cut and extended again, so that everything behind, an old footer too, is zero. In between the
    // file is as long as its records, which opening accepts.
    VERGER_RETURN_IF_ERROR(file->resize(kChunkHeaderSize + static_cast<std::uint64_t>(plan.keep)));
    VERGER_RETURN_IF_ERROR(file->resize(plan.cut_size));
    VERGER_RETURN_IF_ERROR(file->sync());
  }
  VERGER_FAILPOINT("log.truncate.before-checkpoints");
  // Readers' checkpoints before the writer's: none may ever lie above it.
  VERGER_RETURN_IF_ERROR(checkpoints.store(Checkpoint::kEpoch, plan.epoch.value()));
  VERGER_RETURN_IF_ERROR(checkpoints.store(Checkpoint::kChaser, plan.chaser.value()));
  VERGER_RETURN_IF_ERROR(checkpoints.store(Checkpoint::kWriter, plan.writer.value()));
  return checkpoints.store(Checkpoint::kTruncate, -1);
}

}  // namespace verger::log::detail
