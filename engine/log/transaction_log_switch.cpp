#include <algorithm>
#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/log/detail/chunk_state.h"
#include "engine/log/detail/log_state.h"
#include "engine/log/detail/truncation.h"

namespace verger::log {

using detail::Checkpoint;

Result<std::shared_ptr<const Chunk>> TransactionLog::switch_in_chunk(const Path& temporary) {
  State& s = *state_;
  if (s.options.access != Access::kWrite) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: was opened read-only", s.directory.string())};
  }
  VERGER_TRY(const auto opened, Chunk::open_completed(s.files, temporary));
  const ChunkHeader header = opened->header();
  const std::lock_guard structure(s.structure_mutex);
  const auto live = s.chunks();
  // Exactly the range of whole live chunks, all of them completed.
  const auto first = std::ranges::find(live, header.start, &Chunk::start);
  const auto last = std::ranges::find(live, header.end, &Chunk::end);
  if (header.chunk_size != s.chunk_size || first == live.end() || last == live.end() ||
      first > last || !std::all_of(first, last + 1, [](const auto& c) { return c->completed(); })) {
    return Error{
        Errc::kConflict,
        fmt::format("{}: covers chunks {} to {}, which are not (or no longer) whole completed "
                    "chunks of the database",
                    temporary.string(), header.start, header.end)};
  }
  VERGER_TRY(const int version, detail::next_version(s.files, s.directory, header.start));
  const Path path = s.directory / chunk_file_name(header.start, version);
  // Complete and synced before it gets its name; a crash after the rename leaves old and new, of
  // which the new one counts, and the old ones are removed at the next opening.
  VERGER_RETURN_IF_ERROR(s.files.rename(temporary, path));
  VERGER_FAILPOINT("log.switch.after-rename");
  VERGER_RETURN_IF_ERROR(s.files.sync_directory(s.directory));
  static_cast<void>(s.files.set_read_only(path, true));
  VERGER_TRY(std::shared_ptr<const Chunk> chunk, Chunk::open_completed(s.files, path));
  const auto replaced = s.put(chunk);
  std::erase_if(s.retired, [](const auto& one) { return one.expired(); });
  for (const auto& old : replaced) {
    ChunkAccess::state(*old).remove_when_unused.store(true);
    s.retired.push_back(old);
  }
  return chunk;
}

Result<void> TransactionLog::truncate(LogPosition position) {
  State& s = *state_;
  VERGER_RETURN_IF_ERROR(s.check_writable());
  VERGER_RETURN_IF_ERROR(flush());
  if (position > end()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("cannot truncate to {}: the log ends at {}", position, end())};
  }
  const std::lock_guard structure(s.structure_mutex);
  VERGER_TRY(const auto listing, detail::list_chunk_files(s.files, s.directory));
  VERGER_TRY(auto stored, detail::CheckpointFiles::load(s.files, s.directory));
  const detail::Snapshot snapshot{std::move(stored), listing};
  LogOptions options = s.options;
  options.chunk_size = s.chunk_size;
  VERGER_TRY(const auto plan,
             detail::plan_truncation(s.files, s.directory, snapshot, options, position));

  // From the first change on readers of what goes are refused, and the writer's own state is void
  // should anything fail in the middle: the next opening finishes it.
  s.active.reset();
  std::vector<std::shared_ptr<const Chunk>> kept;
  std::shared_ptr<const Chunk> cut;
  for (const auto& chunk : s.chunks()) {
    if (chunk->start() >= plan.first_removed) {
      ChunkAccess::state(*chunk).gone.store(true, std::memory_order_release);
    } else if (plan.cut && chunk->path().filename() == *plan.cut) {
      ChunkAccess::publish(*chunk, plan.keep);
      cut = chunk;
    } else {
      kept.push_back(chunk);
    }
  }
  s.end.store(plan.target.value(), std::memory_order_release);
  for (const auto& weak : s.retired) {
    if (const auto old = weak.lock(); old && old->start() >= plan.first_removed) {
      // Its name may soon belong to a new chunk.
      ChunkAccess::state(*old).remove_when_unused.store(false);
      ChunkAccess::state(*old).gone.store(true, std::memory_order_release);
    }
  }
  const auto carry_out = [&]() -> Result<void> {
    VERGER_RETURN_IF_ERROR(detail::carry_out(s.files, s.directory, s.stored, plan));
    if (cut) {
      VERGER_TRY(auto reopened, Chunk::open_active(s.files, cut->path(), plan.keep));
      VERGER_TRY(s.active,
                 detail::ActiveChunk::open(s.files, reopened, s.options.hash_in_background));
      kept.push_back(std::move(reopened));
    }
    return {};
  };
  const auto done = s.guarded(carry_out());
  {
    const std::lock_guard table(s.table_mutex);
    s.table = std::move(kept);
  }
  s.append_position = plan.target.value();
  {
    const std::lock_guard guard(s.epoch_mutex);
    s.epochs.truncate(plan.target);
    s.unflushed_epochs.clear();
    if (!s.epochs.last()) {
      s.epochs_complete = false;
    }
    const std::lock_guard guard_checkpoints(s.checkpoint_mutex);
    s.checkpoints.epoch = plan.epoch;
    s.checkpoints.chaser = std::min(s.checkpoints.chaser, plan.target);
  }
  return done;
}

}  // namespace verger::log
