#include "engine/backup/restore_job.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/backup/detail/file_copy.h"
#include "engine/backup/detail/file_restore.h"
#include "engine/backup/detail/index_choice.h"
#include "engine/backup/detail/restore_files.h"
#include "engine/backup/detail/restore_place.h"
#include "engine/base/database_files.h"
#include "engine/base/directories.h"
#include "engine/base/failpoint.h"
#include "engine/base/quantities.h"
#include "engine/log/pending_truncation.h"
#include "engine/log/transaction_log.h"

namespace verger::backup {
namespace {

using detail::FileRestore;
using detail::NewFile;
using detail::RestorePlace;

/// Left free on the target's disk.
constexpr std::uint64_t kSpareSpace = 64ULL << 20U;

}  // namespace

struct RestoreJob::State {
  static bool is_table(const NewFile& file) { return detail::is_index_table(file.entry); }

  enum class Phase : std::uint8_t {
    kBegin,
    kCopy,
    kSwitch,
    kVerify,
    kOpen,
    kIndex,
    kFinish,
    kDone
  };

  State(FileSystem& files, BlobStore& store_in, Manifest manifest_in, RestoreOptions options_in,
        Clock& clock_in, Random& random_in, Log& log_in, scavenge::ParallelRunner& runner_in)
      : disk(files),
        store(store_in),
        manifest(std::move(manifest_in)),
        options(std::move(options_in)),
        clock(clock_in),
        random(random_in),
        log(log_in),
        runner(runner_in),
        place(disk, options.directory, options.index()),
        files_to_place(detail::new_files_of(manifest)) {
    // Tables come last: by then it is known how fast the rest was.
    std::vector<NewFile> tables;
    std::ranges::copy_if(files_to_place, std::back_inserter(tables), is_table);
    std::erase_if(files_to_place, is_table);
    std::ranges::move(tables, std::back_inserter(files_to_place));
  }

  FileSystem& disk;
  BlobStore& store;
  Manifest manifest;
  RestoreOptions options;
  Clock& clock;
  Random& random;
  Log& log;
  scavenge::ParallelRunner& runner;
  RestorePlace place;
  std::vector<NewFile> files_to_place;
  std::unique_ptr<FileLock> lock;
  Phase phase = Phase::kBegin;
  RestoreProgress progress;
  RestorePlace::Progress stored;
  std::uint64_t resumed = 0;
  std::vector<std::size_t> waiting;  ///< of files_to_place, the next one last
  std::vector<FileRestore> running;
  Monotonic copy_began{};
  std::uint64_t transferred = 0;  ///< from the store since then
  bool to_choose = false;         ///< where tables come from, once all else is copied
  std::string choice;
  std::optional<detail::IndexFromLog> index;

  Result<void> begin() {
    VERGER_RETURN_IF_ERROR(make_directories_durably(disk, options.directory));
    VERGER_RETURN_IF_ERROR(refuse_running());
    VERGER_TRY(lock, disk.lock(options.directory / "verger.lock"));
    VERGER_TRY(auto unfinished, place.load());
    VERGER_RETURN_IF_ERROR(refuse_kept_or_reverting(unfinished));
    if (unfinished && unfinished->generation != manifest.id) {
      if (unfinished->phase != RestorePlace::Phase::kStaging) {
        return Error{Errc::kRefused,
                     fmt::format("{}: the restore of {} was interrupted while it replaced files: "
                                 "finish it first, by restoring that one again",
                                 options.directory.string(), unfinished->generation)};
      }
      VERGER_RETURN_IF_ERROR(place.discard());
      unfinished.reset();
    }
    if (unfinished) {
      stored = *std::move(unfinished);
      log.info("an interrupted restore is resumed", {{"backup", manifest.id}});
    } else {
      stored.generation = manifest.id;
    }
    if (stored.phase != RestorePlace::Phase::kFinishing) {
      stored.keep_old = options.keep_old;
    }
    if (stored.phase == RestorePlace::Phase::kStaging && options.index_from == IndexSource::kLog) {
      stored.index_from_log = true;
    }
    if (stored.phase == RestorePlace::Phase::kFinishing) {
      phase = Phase::kFinish;
      return {};
    }
    VERGER_RETURN_IF_ERROR(select_files());
    VERGER_RETURN_IF_ERROR(check_space());
    if (stored.index_from_log) {
      leave_tables_out();
      choice = "made from the log";
    }
    to_choose = options.index_from == IndexSource::kFaster &&
                stored.phase == RestorePlace::Phase::kStaging && !waiting.empty() &&
                is_table(files_to_place[waiting.front()]);
    VERGER_RETURN_IF_ERROR(place.save(stored));
    progress = {.phase = "copy", .done = resumed, .total = resumed + bytes_of(waiting)};
    copy_began = clock.monotonic();
    phase = Phase::kCopy;
    return {};
  }

  /// What the way back from a restore left in the middle, or needs.
  Result<void> refuse_kept_or_reverting(
      const std::optional<RestorePlace::Progress>& unfinished) const {
    if (unfinished && (unfinished->phase == RestorePlace::Phase::kReverting ||
                       unfinished->phase == RestorePlace::Phase::kReverted)) {
      return Error{
          Errc::kRefused,
          fmt::format("{}: the revert of the restore of {} was interrupted: finish it "
                      "first (verger-db restore DIR --revert {})",
                      options.directory.string(), unfinished->generation, unfinished->generation)};
    }
    const bool finishing = unfinished && unfinished->phase == RestorePlace::Phase::kFinishing;
    VERGER_TRY(const bool kept, disk.exists(place.kept(manifest.id)));
    if (options.keep_old && kept && !finishing) {
      return Error{Errc::kRefused,
                   fmt::format("{}: holds the files from before an earlier restore of this backup; "
                               "discard them first (verger-db restore DIR --discard-old {})",
                               place.kept(manifest.id).string(), manifest.id)};
    }
    return {};
  }

  Result<void> refuse_running() const {
    if (options.assume_stopped || !is_machine_disk(disk)) {
      return {};
    }
    VERGER_TRY(const auto writer, log::process_that_writes(options.directory));
    if (writer) {
      return Error{Errc::kRefused,
                   fmt::format("{}: process {} has it open for writing; stop the node first: a "
                               "restore under a running server destroys the data",
                               options.directory.string(), *writer)};
    }
    return {};
  }

  /// What an interrupted restore has copied need not be copied again: it waits beside the old
  /// files, complete, or is in place already.
  Result<void> select_files() {
    for (std::size_t i = files_to_place.size(); i-- > 0;) {
      const auto& entry = files_to_place[i].entry;
      bool there = false;
      const auto size = disk.file_size(place.staged(entry.path));
      if (size && *size == entry.restored_size) {
        there = true;
      } else if (stored.phase == RestorePlace::Phase::kSwitching) {
        VERGER_TRY(there, detail::has_content(disk, files_to_place[i], place.target(entry.path)));
      }
      if (there) {
        resumed += entry.size;
      } else {
        waiting.push_back(i);
      }
    }
    return {};
  }

  [[nodiscard]] std::uint64_t bytes_of(const std::vector<std::size_t>& indices) const {
    std::uint64_t sum = 0;
    for (const auto i : indices) {
      sum += files_to_place[i].entry.size;
    }
    return sum;
  }

  /// What is still to be copied takes space beside the old files, on each of the two volumes.
  Result<void> check_space() const {
    std::uint64_t in_database = kSpareSpace;
    std::uint64_t in_index = kSpareSpace;
    for (const auto i : waiting) {
      const auto& entry = files_to_place[i].entry;
      // What is made from the log is sorted in pieces first.
      const auto times = stored.index_from_log && detail::is_index_table(entry) ? 2U : 1U;
      (detail::is_of_index(entry.path) ? in_index : in_database) += times * entry.size;
    }
    VERGER_TRY(const bool shared, detail::share_volume(disk, options.directory, options.index()));
    if (shared) {
      return check_room(options.directory, in_database + in_index - kSpareSpace);
    }
    VERGER_RETURN_IF_ERROR(check_room(options.directory, in_database));
    return check_room(options.index(), in_index);
  }

  Result<void> check_room(const Path& directory, std::uint64_t need) const {
    VERGER_TRY(const auto there, existing_part(disk, directory));
    VERGER_TRY(const auto space, disk.space(there));
    if (space.available < need) {
      return Error{Errc::kNoSpace,
                   fmt::format("{}: the restore needs {} beside the files that are there, and {} "
                               "are free; nothing was changed",
                               directory.string(), human_bytes(static_cast<std::int64_t>(need)),
                               human_bytes(static_cast<std::int64_t>(space.available)))};
    }
    return {};
  }

  /// Works on waiting files until all are done.
  template <class Begin>
  Result<bool> step_files(std::uint64_t most, Begin begin_work) {
    while (running.size() < std::max<std::size_t>(options.lanes, 1) && !waiting.empty()) {
      if (to_choose && only_tables_wait()) {
        break;  // what runs ends first
      }
      const auto next = waiting.back();
      waiting.pop_back();
      VERGER_TRY(auto work, begin_work(files_to_place[next]));
      running.push_back(std::move(work));
    }
    std::vector<Result<bool>> outcomes(running.size(), false);
    std::vector<std::function<void()>> pieces;
    pieces.reserve(running.size());
    for (std::size_t i = 0; i < running.size(); ++i) {
      pieces.emplace_back([this, &outcomes, i, most] { outcomes[i] = running[i].step(most); });
    }
    runner.run(pieces);
    for (std::size_t i = running.size(); i-- > 0;) {
      if (!outcomes[i]) {
        return outcomes[i].error();
      }
      progress.done += running[i].take_done();
      if (*outcomes[i]) {
        transferred += running[i].stored_size();
        VERGER_FAILPOINT("restore.after-file");
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    return running.empty() && waiting.empty();
  }

  [[nodiscard]] bool only_tables_wait() const {
    return !waiting.empty() && is_table(files_to_place[waiting.back()]);
  }

  void leave_tables_out() {
    // They are the last ones of files_to_place, so that the other indices stay valid.
    std::erase_if(waiting, [this](std::size_t i) { return is_table(files_to_place[i]); });
    std::erase_if(files_to_place, is_table);
  }

  Result<void> choose_index() {
    to_choose = false;
    std::vector<NewFile> tables;
    tables.reserve(waiting.size());
    for (const auto i : waiting) {
      tables.push_back(files_to_place[i]);
    }
    const auto seconds = std::chrono::duration<double>(clock.monotonic() - copy_began).count();
    VERGER_TRY(const auto left, detail::stored_bytes(store, tables));
    const detail::CopyMeasured copied{.bytes = transferred, .seconds = seconds, .left = left};
    VERGER_TRY(auto chosen, detail::choose_index(disk, place, manifest, copied, clock, random));
    choice = std::move(chosen.text);
    log.info("the restored index", {{"backup", manifest.id}, {"choice", choice}});
    if (chosen.from_log) {
      stored.index_from_log = true;
      VERGER_RETURN_IF_ERROR(place.save(stored));
      progress.total -= bytes_of(waiting);
      leave_tables_out();
    }
    return {};
  }

  Result<void> copy(std::uint64_t most) {
    if (to_choose && running.empty() && only_tables_wait()) {
      VERGER_RETURN_IF_ERROR(choose_index());
    }
    VERGER_TRY(const bool done, step_files(most, [this](const NewFile& file) {
                 return FileRestore::copy(disk, store, file, place.staged(file.entry.path));
               }));
    if (done) {
      progress = {.phase = "switch", .done = 0, .total = 0};
      phase = Phase::kSwitch;
    }
    return {};
  }

  Result<void> switch_files() {
    VERGER_FAILPOINT("restore.before-switch");
    // Copying may have taken hours.
    VERGER_RETURN_IF_ERROR(refuse_running());
    if (stored.phase == RestorePlace::Phase::kStaging) {
      stored.phase = RestorePlace::Phase::kSwitching;
      VERGER_TRY(stored.old, place.database_files());
      VERGER_RETURN_IF_ERROR(place.save(stored));
      VERGER_FAILPOINT("restore.switch-noted");
    }
    VERGER_RETURN_IF_ERROR(place.switch_files(stored, files_to_place));
    VERGER_FAILPOINT("restore.after-switch");
    if (options.verify_after) {
      for (std::size_t i = files_to_place.size(); i-- > 0;) {
        waiting.push_back(i);
      }
      progress = {.phase = "verify", .done = 0, .total = bytes_of(waiting)};
      phase = Phase::kVerify;
    } else {
      phase = Phase::kOpen;
    }
    return {};
  }

  Result<void> verify(std::uint64_t most) {
    VERGER_TRY(const bool done, step_files(most, [this](const NewFile& file) {
                 return FileRestore::compare(disk, file, place.target(file.entry.path));
               }));
    if (done) {
      phase = Phase::kOpen;
    }
    return {};
  }

  /// As every opening does: chunks, headers, footers, the chain of epochs, the end of the log.
  Result<void> open() {
    log::LogOptions how;
    how.chunk_size = manifest.positions.chunk_size;
    auto opened =
        log::TransactionLog::open(disk, options.directory, how, clock, random, null_log());
    if (!opened) {
      return opened.error().within(
          "the restored database cannot be opened; the old files lie in "
          "verger-restore/old, from where `verger-db restore --revert` puts them back");
    }
    if ((*opened)->end() != manifest.positions.writer) {
      return Error{
          Errc::kCorruption,
          fmt::format("{}: the restored log ends at {}, the backup's at {}",
                      options.directory.string(), (*opened)->end(), manifest.positions.writer)};
    }
    if (stored.index_from_log) {
      index.emplace(disk, options.index(), *std::move(opened), manifest.positions.end, clock,
                    random);
      progress = {.phase = "index", .done = 0, .total = 0};
      phase = Phase::kIndex;
      return {};
    }
    return everything_is_there();
  }

  Result<void> make_index(Budget budget) {
    VERGER_TRY(const bool done, index->step(budget));
    if (!done) {
      return {};
    }
    index.reset();
    VERGER_FAILPOINT("restore.after-index");
    return everything_is_there();
  }

  Result<void> everything_is_there() {
    stored.phase = RestorePlace::Phase::kFinishing;
    VERGER_RETURN_IF_ERROR(place.save(stored));
    VERGER_FAILPOINT("restore.before-finish");
    phase = Phase::kFinish;
    return {};
  }

  Result<void> step(Budget budget) {
    const auto most = std::max<std::uint64_t>(budget.units, 1) * detail::kBytesPerUnit;
    switch (phase) {
      case Phase::kBegin:
        return begin();
      case Phase::kCopy:
        return copy(most);
      case Phase::kSwitch:
        return switch_files();
      case Phase::kVerify:
        return verify(most);
      case Phase::kOpen:
        return open();
      case Phase::kIndex:
        return make_index(budget);
      case Phase::kFinish:
        VERGER_RETURN_IF_ERROR(place.finish(stored));
        phase = Phase::kDone;
        return {};
      case Phase::kDone:
        break;
    }
    return {};
  }
};

RestoreJob::RestoreJob(FileSystem& files, BlobStore& store, Manifest manifest,
                       RestoreOptions options, Clock& clock, Random& random, Log& log,
                       scavenge::ParallelRunner& runner)
    : state_(std::make_unique<State>(files, store, std::move(manifest), std::move(options), clock,
                                     random, log, runner)) {}
RestoreJob::~RestoreJob() = default;

Result<StepOutcome> RestoreJob::step(Budget budget) {
  VERGER_RETURN_IF_ERROR(state_->step(budget));
  return StepOutcome{state_->phase == State::Phase::kDone ? StepOutcome::Kind::kDone
                                                          : StepOutcome::Kind::kMore};
}

const RestoreProgress& RestoreJob::progress() const { return state_->progress; }
std::uint64_t RestoreJob::resumed_bytes() const { return state_->resumed; }
const std::string& RestoreJob::index_choice() const { return state_->choice; }
bool RestoreJob::rebuilds_index() const { return state_->stored.index_from_log; }
bool RestoreJob::replaces_files() const {
  return state_->phase > State::Phase::kCopy ||
         state_->stored.phase != RestorePlace::Phase::kStaging;
}
bool RestoreJob::is_in_place() const { return state_->phase >= State::Phase::kFinish; }

}  // namespace verger::backup
