#include "engine/backup/backup_job.h"

#include <algorithm>
#include <fmt/format.h>
#include <ranges>

#include "engine/backup/detail/copy_queue.h"
#include "engine/backup/detail/index_copy.h"
#include "engine/backup/detail/log_copy.h"
#include "engine/backup/generation_digest.h"
#include "engine/base/failpoint.h"
#include "engine/log/writer_position.h"

namespace verger::backup {
namespace {

using std::chrono::milliseconds;

/// For the node to write chaser.chk, which follows the index map, and writer.chk.
constexpr int kChaserAttempts = 100;
constexpr milliseconds kChaserRest{100};
constexpr milliseconds kMapRest{10};
/// A session that was not updated for so long is one of a backup that was killed.
constexpr std::int64_t kDeadSessionTicks = 3600 * kTicksPerSecond;

StepOutcome more() { return {}; }
StepOutcome rest(milliseconds time) { return {StepOutcome::Kind::kRest, time}; }

}  // namespace

struct BackupJob::State {
  enum class Phase : std::uint8_t {
    kBegin,
    kIndex,
    kCheckpoints,
    kChunks,
    kCompare,
    kDigests,
    kManifest,
    kDone,
  };

  State(FileSystem& files, Repository& repository_in, BackupOptions options_in, Clock& clock_in,
        Random& random_in, Log& log_in, scavenge::ParallelRunner& runner)
      : disk(files),
        repository(repository_in),
        options(std::move(options_in)),
        clock(clock_in),
        random(random_in),
        log(log_in),
        queue(repository.store(), known, runner, options.lanes),
        index(disk, options.source, repository.store(), queue,
              [this] { return log_copy.identity().value_or(std::string()); }),
        log_copy(disk, options.source, repository.store(), clock, random, log) {}

  FileSystem& disk;
  Repository& repository;
  BackupOptions options;
  Clock& clock;
  Random& random;
  Log& log;
  Phase phase = Phase::kBegin;
  BackupProgress progress;
  Manifest manifest;
  detail::KnownFiles known;
  detail::CopyQueue queue;
  detail::IndexCopy index;
  detail::LogCopy log_copy;
  std::vector<BackedUpFile> log_files;
  int chaser_attempts = 0;
  LogPosition written_before{0};  ///< where a running node's log ended when the copy began
  bool announced = false;         ///< its session is in the repository
  bool other_log = false;         ///< than the parent's
  std::uint64_t noted_bytes = 0;  ///< copied, when the session was updated last
  std::unique_ptr<GenerationDigestJob> digest_job;

  Result<void> begin() {
    VERGER_RETURN_IF_ERROR(check_source(disk, options.source));
    if (options.parent && options.parent->source.node != options.node.node) {
      return Error{Errc::kRefused,
                   fmt::format("the backup {} is of the node \"{}\", this one of \"{}\": files of "
                               "different nodes are never mixed; make a full backup",
                               options.parent->id, options.parent->source.node, options.node.node)};
    }
    const auto now = clock.now();
    manifest.id = make_generation_id(now, random.next());
    manifest.parent = options.parent ? options.parent->id : std::string();
    manifest.started_at = now;
    manifest.source = options.node;
    manifest.source.state = to_string(options.source.state);
    // Before the first look at what is stored.
    VERGER_RETURN_IF_ERROR(repository.begin_session(session()));
    announced = true;
    if (options.source.state == SourceState::kLive) {
      VERGER_TRY(written_before, log::writer_position(disk, options.source.directory));
      VERGER_RETURN_IF_ERROR(log_copy.note_chunks());
    }
    if (options.parent) {
      known.add(options.parent->files);
      index.offer(*options.parent, [this] { return log_copy.continues(*options.parent); });
    }
    VERGER_TRY(const auto others, repository.sessions());
    for (const auto& other : others) {
      if (other.id != manifest.id && other.node == options.node.node) {
        known.add(other.files);
      }
    }
    phase = Phase::kIndex;
    return {};
  }

  [[nodiscard]] BackupSession session() const {
    BackupSession current{.id = manifest.id,
                          .node = options.node.node,
                          .updated_at = clock.now(),
                          .files = index.files()};
    current.files.insert(current.files.end(), log_files.begin(), log_files.end());
    return current;
  }

  /// It ends without a manifest. Where the repository cannot be written to, the session stays until
  /// a deletion takes it for abandoned.
  void release() {
    if (std::exchange(announced, false)) {
      static_cast<void>(repository.release_session(session()).has_value());
    }
  }

  Result<void> note_session() {
    if (queue.copied() - noted_bytes < options.session_interval) {
      return {};
    }
    noted_bytes = queue.copied();
    return repository.update_session(session());
  }

  Result<StepOutcome> step_index(std::uint64_t most) {
    VERGER_TRY(const auto outcome, index.step(most));
    VERGER_RETURN_IF_ERROR(note_session());
    if (outcome == detail::IndexCopy::Outcome::kDone) {
      phase = Phase::kCheckpoints;
      VERGER_FAILPOINT("backup.after-index");
    }
    return outcome == detail::IndexCopy::Outcome::kRest ? rest(kMapRest) : more();
  }

  Result<StepOutcome> step_checkpoints() {
    if (options.before_checkpoints) {
      VERGER_RETURN_IF_ERROR(options.before_checkpoints());
    }
    const bool live = options.source.state == SourceState::kLive;
    const auto chaser_is_late = [&] { return live && ++chaser_attempts < kChaserAttempts; };
    if (live && !options.whole_log) {
      // What clients were promised before the copy began is to be in it.
      VERGER_TRY(const auto chaser, log_copy.chaser());
      if (chaser < written_before && chaser_is_late()) {
        return rest(kChaserRest);
      }
    }
    VERGER_RETURN_IF_ERROR(log_copy.copy_checkpoints());
    const auto chaser = log_copy.positions().chaser;
    const auto commit = index.map().commit_checkpoint;
    if (index.has_map() && commit >= chaser && commit.value() >= 0) {
      if (chaser_is_late()) {
        return rest(kChaserRest);
      }
      manifest.warnings.push_back(
          fmt::format("the index reaches to {}, chaser.chk only to {}: a restored node rebuilds "
                      "its index",
                      commit, chaser));
    }
    if (live && !options.whole_log && chaser < written_before) {
      manifest.warnings.push_back(
          fmt::format("the log reached to {} when the backup began, and chaser.chk only to {} some "
                      "seconds later: what lies between was not committed, and is not in the "
                      "backup",
                      written_before, chaser));
    }
    manifest.checkpoints_at = clock.now();
    VERGER_FAILPOINT("backup.after-checkpoints");
    VERGER_RETURN_IF_ERROR(log_copy.select_chunks(
        queue, options.whole_log || options.source.state != SourceState::kLive,
        options.max_truncation));
    VERGER_RETURN_IF_ERROR(check_parent_log());
    VERGER_RETURN_IF_ERROR(detail::want_other_files(disk, options.source, queue));
    progress.phase = "chunks";
    progress.total = queue.copied() + queue.reused() + log_copy.selected_bytes();
    phase = Phase::kChunks;
    return more();
  }

  /// The parent's last epoch, if this log still knows that far back, is one of this log.
  Result<void> check_parent_log() {
    if (!options.parent || options.parent->positions.epoch_id.is_zero()) {
      return {};
    }
    const auto& before = options.parent->positions;
    const auto& epochs = log_copy.epochs();
    const auto same = std::ranges::find(epochs, before.restored_epoch, &log::Epoch::position);
    other_log = same == epochs.end()
                    ? !epochs.empty() && epochs.front().position <= before.restored_epoch
                    : same->id != before.epoch_id;
    if (other_log) {
      return Error{Errc::kRefused,
                   fmt::format("the backup {} is of another log than {}: epoch {} at {} is not in "
                               "this one; make a full backup",
                               options.parent->id, options.source.directory.string(),
                               before.epoch_number, before.restored_epoch)};
    }
    return {};
  }

  Result<StepOutcome> step_chunks(std::uint64_t most) {
    VERGER_TRY(const bool done, queue.step(most));
    for (auto& file : queue.take_stored()) {
      log_files.push_back(std::move(file));
      VERGER_FAILPOINT("backup.after-chunk");
    }
    VERGER_RETURN_IF_ERROR(note_session());
    if (done) {
      progress.phase = "compare";
      phase = Phase::kCompare;
    }
    return more();
  }

  Result<StepOutcome> compare(std::uint64_t most) {
    if (options.source.state == SourceState::kLive) {
      VERGER_TRY(const bool compared, index.compare_scavenge_state(most));
      if (!compared) {
        return more();
      }
      VERGER_RETURN_IF_ERROR(log_copy.compare());
      if (auto checked = check_source(disk, options.source); !checked) {
        return Error{Errc::kConflict,
                     "what began during the copy makes it unusable; nothing was recorded as a "
                     "backup: " +
                         checked.error().message};
      }
    }
    assemble();
    if (options.digests != WantedDigests::kNone) {
      progress.phase = "digests";
      digest_job = std::make_unique<GenerationDigestJob>(
          disk, repository.store(), manifest, options.digests == WantedDigests::kReadable, clock,
          random, log);
      phase = Phase::kDigests;
    } else {
      phase = Phase::kManifest;
    }
    return more();
  }

  void assemble() {
    manifest.positions = log_copy.positions();
    manifest.positions.index_prepare = index.map().prepare_checkpoint;
    manifest.positions.index_commit = index.map().commit_checkpoint;
    manifest.files = index.files();
    const auto& checkpoints = log_copy.checkpoints();
    manifest.files.insert(manifest.files.end(), checkpoints.begin(), checkpoints.end());
    manifest.files.insert(manifest.files.end(), log_files.begin(), log_files.end());
    std::ranges::sort(manifest.files, {}, &BackedUpFile::path);
    manifest.reused_bytes = queue.reused();
  }

  Result<StepOutcome> step_digests(Budget budget) {
    VERGER_TRY(const auto outcome, digest_job->step(budget));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      manifest.digests = digest_job->digests();
      digest_job.reset();
      phase = Phase::kManifest;
    }
    return more();
  }

  Result<StepOutcome> finish() {
    manifest.finished_at = clock.now();
    VERGER_FAILPOINT("backup.before-manifest");
    VERGER_RETURN_IF_ERROR(repository.save(manifest));
    announced = false;
    // What backups of this node that were killed had stored is in this one, or of no use.
    VERGER_TRY(const auto others, repository.sessions());
    for (const auto& other : others) {
      if (other.node == options.node.node &&
          other.updated_at.value() < manifest.finished_at.value() - kDeadSessionTicks) {
        VERGER_RETURN_IF_ERROR(repository.end_session(other.id));
      }
    }
    phase = Phase::kDone;
    return StepOutcome{StepOutcome::Kind::kDone};
  }

  Result<StepOutcome> step(Budget budget) {
    const auto most = std::max<std::uint64_t>(budget.units, 1) * detail::kBytesPerUnit;
    switch (phase) {
      case Phase::kBegin:
        VERGER_RETURN_IF_ERROR(begin());
        return more();
      case Phase::kIndex:
        return step_index(most);
      case Phase::kCheckpoints:
        return step_checkpoints();
      case Phase::kChunks:
        return step_chunks(most);
      case Phase::kCompare:
        return compare(most);
      case Phase::kDigests:
        return step_digests(budget);
      case Phase::kManifest:
        return finish();
      case Phase::kDone:
        break;
    }
    return StepOutcome{StepOutcome::Kind::kDone};
  }
};

BackupJob::BackupJob(FileSystem& files, Repository& repository, BackupOptions options, Clock& clock,
                     Random& random, Log& log, scavenge::ParallelRunner& runner)
    : state_(std::make_unique<State>(files, repository, std::move(options), clock, random, log,
                                     runner)) {}
BackupJob::~BackupJob() { state_->release(); }

Result<StepOutcome> BackupJob::step(Budget budget) {
  auto& state = *state_;
  auto outcome = state.step(budget);
  if (!outcome) {
    state.release();
  }
  state.progress.copied = state.queue.copied();
  state.progress.reused = state.queue.reused();
  state.progress.done = state.progress.copied + state.progress.reused;
  state.progress.total = std::max(state.progress.total, state.progress.done);
  return outcome;
}

const BackupProgress& BackupJob::progress() const { return state_->progress; }
bool BackupJob::is_of_another_log() const { return state_->other_log; }
const Manifest& BackupJob::manifest() const { return state_->manifest; }

Result<std::optional<Manifest>> find_parent(const Repository& repository, std::string_view node) {
  VERGER_TRY(const auto ids, repository.generation_ids());
  for (const auto& id : ids | std::views::reverse) {
    auto manifest = repository.load(id);
    const bool is_unusable = !manifest && (manifest.error().code == Errc::kNotFound ||
                                           manifest.error().code == Errc::kCorruption ||
                                           manifest.error().code == Errc::kUnsupported);
    if (!manifest && !is_unusable) {
      return manifest.error();
    }
    if (manifest && manifest->source.node == node) {
      return std::optional(*std::move(manifest));
    }
  }
  return std::optional<Manifest>();
}

}  // namespace verger::backup
