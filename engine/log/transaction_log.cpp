#include "engine/log/transaction_log.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/database_files.h"
#include "engine/log/detail/chunk_state.h"
#include "engine/log/detail/log_state.h"
#include "engine/log/detail/server_search.h"
#include "engine/log/detail/truncation.h"

namespace verger::log {

using detail::Checkpoint;
using detail::Judgement;
using detail::Snapshot;

namespace {

/// How often an opening beside a writer starts over before it gives up.
constexpr int kAttempts = 20;

struct Opened {
  Snapshot snapshot;
  Judgement judgement;
  std::unique_ptr<FileLock> lock;
  bool truncated = false;
};

/// Chunks may be switched and writer.chk may move between the looks at both: an inconsistency
/// counts only when nothing has changed in between.
Result<Opened> open_beside_a_writer(FileSystem& files, const Path& directory,
                                    const LogOptions& options) {
  for (int attempt = 1;; ++attempt) {
    VERGER_TRY(auto snapshot, detail::take_snapshot(files, directory, false));
    auto judgement = detail::judge(files, directory, snapshot, options);
    if (judgement) {
      return Opened{std::move(snapshot), *std::move(judgement), nullptr, false};
    }
    VERGER_TRY(const auto now, detail::take_snapshot(files, directory, false));
    if (now == snapshot || attempt == kAttempts) {
      return std::move(judgement).error();
    }
  }
}

/// A directory is there for good once the one above it was synced; so is that one.
Result<void> make_durable_directory(FileSystem& files, const Path& directory) {
  std::vector<Path> parents;
  for (Path at = directory; !at.empty(); at = at.parent_path()) {
    VERGER_TRY(const bool exists, files.exists(at));
    if (exists) {
      break;
    }
    parents.push_back(at.has_parent_path() ? at.parent_path() : Path("."));
  }
  VERGER_RETURN_IF_ERROR(files.make_directories(directory));
  for (const Path& parent : parents) {
    VERGER_RETURN_IF_ERROR(files.sync_directory(parent));
  }
  return {};
}

/// All is judged before the lock file, the first change, is made; and again if another process
/// changed the directory before this one held the lock.
Result<Opened> open_alone(FileSystem& files, const Path& directory, const LogOptions& options) {
  if (options.create) {
    VERGER_RETURN_IF_ERROR(make_durable_directory(files, directory));
  }
  std::unique_ptr<FileLock> lock;
  for (;;) {
    VERGER_TRY(auto snapshot, detail::take_snapshot(files, directory, options.create));
    if (!options.assume_stopped && is_machine_disk(files)) {
      VERGER_RETURN_IF_ERROR(detail::refuse_running_server(directory));
    }
    const LogPosition cut(snapshot.checkpoints.value(Checkpoint::kTruncate));
    std::optional<detail::TruncationPlan> plan;
    std::optional<Judgement> judgement;
    if (cut != kNoPosition) {
      VERGER_TRY(plan, detail::plan_truncation(files, directory, snapshot, options, cut));
    } else {
      VERGER_TRY(judgement, detail::judge(files, directory, snapshot, options));
    }
    if (!lock) {
      VERGER_TRY(lock, files.lock(directory / "verger.lock"));
      VERGER_TRY(const auto now, detail::take_snapshot(files, directory, options.create));
      if (now != snapshot) {
        continue;
      }
    }
    if (plan) {
      VERGER_RETURN_IF_ERROR(detail::carry_out(files, directory, snapshot.checkpoints, *plan));
      VERGER_TRY(snapshot, detail::take_snapshot(files, directory, true));
      VERGER_TRY(judgement, detail::judge(files, directory, snapshot, options));
    }
    return Opened{std::move(snapshot), *std::move(judgement), std::move(lock), plan.has_value()};
  }
}

/// Brings the directory into the state that the judgement describes.
Result<void> recover(TransactionLog::State& state, const Judgement& judgement) {
  // writer.chk before anything is removed: with the old value the received chunk would be the last,
  // and it would be found again.
  const auto& values = judgement.checkpoints;
  VERGER_RETURN_IF_ERROR(state.stored.store(Checkpoint::kWriter, values.writer.value()));
  // Missing files get their initial values, so that other programs need not guess.
  VERGER_RETURN_IF_ERROR(state.stored.store(Checkpoint::kChaser, values.chaser.value()));
  VERGER_RETURN_IF_ERROR(state.stored.store(Checkpoint::kEpoch, values.epoch.value()));
  VERGER_RETURN_IF_ERROR(state.stored.store(Checkpoint::kProposal, values.proposal));
  VERGER_RETURN_IF_ERROR(state.stored.store(Checkpoint::kTruncate, -1));
  // None of these files is live, in any order of removals.
  for (const auto& name : judgement.to_remove) {
    VERGER_RETURN_IF_ERROR(state.files.remove(state.directory / name));
    state.log.info("removed a chunk file that is not live", {{"file", name}});
  }
  if (!judgement.to_remove.empty()) {
    VERGER_RETURN_IF_ERROR(state.files.sync_directory(state.directory));
  }
  for (const auto& name : judgement.temporary) {
    if (const auto removed = state.files.remove(state.directory / name); !removed) {
      state.log.warning("cannot remove a temporary file", {{"error", removed.error().message}});
    }
  }
  if (judgement.active) {
    VERGER_TRY(state.active, detail::ActiveChunk::open(state.files, judgement.active,
                                                       state.options.hash_in_background));
  }
  return {};
}

}  // namespace

TransactionLog::State::State(FileSystem& file_system, Path path, LogOptions log_options,
                             Clock& time, Random& chance, Log& output,
                             detail::CheckpointFiles checkpoint_files, Judgement judgement)
    : files(file_system),
      directory(std::move(path)),
      options(log_options),
      clock(time),
      random(chance),
      log(output),
      chunk_size(judgement.chunk_size),
      stored(std::move(checkpoint_files)),
      checkpoints(judgement.checkpoints),
      table(std::move(judgement.chunks)),
      end(judgement.checkpoints.writer.value()),
      append_position(judgement.checkpoints.writer.value()),
      epochs(std::move(judgement.epochs)) {}

TransactionLog::TransactionLog(std::unique_ptr<State> state) : state_(std::move(state)) {}
TransactionLog::~TransactionLog() = default;

Result<std::unique_ptr<TransactionLog>> TransactionLog::open(FileSystem& files,
                                                             const Path& directory,
                                                             LogOptions options, Clock& clock,
                                                             Random& random, Log& log) {
  auto opened = options.access == Access::kReadOnly
                    ? open_beside_a_writer(files, directory, options)
                    : open_alone(files, directory, options);
  if (!opened) {
    return std::move(opened).error();
  }
  const Judgement recovery = opened->judgement;
  auto state = std::make_unique<State>(files, directory, options, clock, random, log,
                                       std::move(opened->snapshot.checkpoints),
                                       std::move(opened->judgement));
  state->lock = std::move(opened->lock);
  state->truncated = opened->truncated;
  if (options.access == Access::kWrite) {
    VERGER_RETURN_IF_ERROR(recover(*state, recovery));
  } else if (recovery.checkpoints.truncate != kNoPosition) {
    log.warning("a truncation of the log is pending; what is shown is the log before it",
                {{"directory", directory.string()},
                 {"position", fmt::to_string(recovery.checkpoints.truncate)}});
  }
  state->checkpoints.truncate =
      options.access == Access::kWrite ? kNoPosition : recovery.checkpoints.truncate;
  return std::unique_ptr<TransactionLog>(new TransactionLog(std::move(state)));
}

const Path& TransactionLog::directory() const { return state_->directory; }
std::int32_t TransactionLog::chunk_size() const { return state_->chunk_size; }
ChunkNumber TransactionLog::chunk_of(LogPosition position) const {
  return ChunkNumber(static_cast<std::int32_t>(position.value() / state_->chunk_size));
}
bool TransactionLog::truncated_at_open() const { return state_->truncated; }

Checkpoints TransactionLog::checkpoints() const {
  const std::lock_guard lock(state_->checkpoint_mutex);
  Checkpoints values = state_->checkpoints;
  values.writer = end();
  return values;
}

std::vector<std::shared_ptr<const Chunk>> TransactionLog::State::chunks() const {
  const std::lock_guard guard(table_mutex);
  return table;
}

std::shared_ptr<const Chunk> TransactionLog::State::chunk_at(LogPosition position) const {
  const std::lock_guard guard(table_mutex);
  const auto after = std::ranges::upper_bound(
      table, position, {}, [](const auto& chunk) { return chunk->start_position(); });
  if (after == table.begin() || (*std::prev(after))->end_position() <= position) {
    return nullptr;
  }
  return *std::prev(after);
}

std::vector<std::shared_ptr<const Chunk>> TransactionLog::State::put(
    std::shared_ptr<const Chunk> chunk) {
  const std::lock_guard guard(table_mutex);
  const auto first = std::ranges::lower_bound(table, chunk->start(), {},
                                              [](const auto& one) { return one->end(); });
  const auto last = std::ranges::upper_bound(table, chunk->end(), {},
                                             [](const auto& one) { return one->start(); });
  std::vector<std::shared_ptr<const Chunk>> replaced(first, last);
  table.insert(table.erase(first, last), std::move(chunk));
  return replaced;
}

std::int64_t TransactionLog::State::boundary_above(std::int64_t position) const {
  return (position / chunk_size + 1) * chunk_size;
}

std::vector<std::shared_ptr<const Chunk>> TransactionLog::chunks() const {
  return state_->chunks();
}
std::shared_ptr<const Chunk> TransactionLog::chunk_at(LogPosition position) const {
  return state_->chunk_at(position);
}
LogPosition TransactionLog::end() const {
  return LogPosition(state_->end.load(std::memory_order_acquire));
}

Result<LogRecord> TransactionLog::read(LogPosition position, Bytes& buffer) const {
  const auto chunk = position < end() ? state_->chunk_at(position) : nullptr;
  if (!chunk) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: no record at log position {}, the log ends at {}",
                             state_->directory.string(), position, end())};
  }
  return chunk->read(position, buffer);
}

Result<bool> TransactionLog::has_record_at(LogPosition position) const {
  const auto chunk = position < end() ? state_->chunk_at(position) : nullptr;
  return chunk ? chunk->has_record_at(position) : Result<bool>(false);
}

void TransactionLog::set_chaser(LogPosition position) {
  const std::lock_guard lock(state_->checkpoint_mutex);
  state_->checkpoints.chaser = position;
}

void TransactionLog::set_proposal(std::int32_t number) {
  const std::lock_guard lock(state_->checkpoint_mutex);
  state_->checkpoints.proposal = number;
}

Result<void> TransactionLog::flush_checkpoints() {
  VERGER_RETURN_IF_ERROR(state_->check_writable());
  const Checkpoints values = checkpoints();
  // Never above writer.chk: the server refuses such a directory.
  const auto stored_writer = state_->stored.value(Checkpoint::kWriter);
  VERGER_RETURN_IF_ERROR(
      state_->stored.store(Checkpoint::kChaser, std::min(values.chaser.value(), stored_writer)));
  if (values.epoch.value() <= stored_writer) {
    VERGER_RETURN_IF_ERROR(state_->stored.store(Checkpoint::kEpoch, values.epoch.value()));
  }
  return state_->stored.store(Checkpoint::kProposal, values.proposal);
}

}  // namespace verger::log
