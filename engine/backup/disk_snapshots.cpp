#include "engine/backup/disk_snapshots.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "engine/backup/detail/snapshot_program.h"
#include "engine/base/directories.h"
#include "engine/base/failpoint.h"

namespace verger::backup {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds kProgramLook{20};
constexpr std::uint64_t kMostPrinted = 64U << 10U;
constexpr std::size_t kMostShown = 400;
constexpr const char* kCreateAction = "create";
constexpr const char* kDeleteAction = "delete";
constexpr const char* kNoteEnding = ".json";
constexpr const char* kOutputEnding = ".out";
constexpr const char* kErrorsEnding = ".err";

const std::string kIndexVolume = "index";
const std::string kDatabaseVolume = "database";
const std::string kBothVolumes = "both";

StepOutcome more_of_snapshot() { return {}; }
StepOutcome look_again() { return {StepOutcome::Kind::kRest, kProgramLook}; }
StepOutcome snapshot_done() { return {.kind = StepOutcome::Kind::kDone}; }

Result<struct stat> stat_of(const Path& path) {
  struct stat seen{};
  if (::stat(path.c_str(), &seen) != 0) {
    const int error = errno;
    return Error{error == ENOENT ? Errc::kNotFound : Errc::kIo,
                 fmt::format("{}: {}", path.string(), std::generic_category().message(error))};
  }
  return seen;
}

/// The end of what a program reported, as one line.
std::string shortened(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.pop_back();
  }
  if (text.size() > kMostShown) {
    text = "…" + text.substr(text.size() - kMostShown);
  }
  std::ranges::replace(text, '\n', ' ');
  return text;
}

/// What follows "NAME=" on a line of its own; empty: there is no such line.
std::string value_in(const std::string& text, const std::string& name) {
  std::string found;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = std::string_view(text).substr(at, end - at);
    if (line.starts_with(name + "=")) {
      found = line.substr(name.size() + 1);
    }
    at = end + 1;
  }
  return found;
}

}  // namespace

struct DiskSnapshots::Note {
  std::string id;
  std::string volume;
  Path database;
  Path index;
};

struct DiskSnapshots::Running {
  Note note;
  bool creates;
  Monotonic since;
  std::unique_ptr<detail::SnapshotProgram> program;
};

DiskSnapshots::DiskSnapshots(FileSystem& files, SnapshotSettings settings, Clock& clock,
                             Random& random, Log& log, std::unique_ptr<FileLock> lock)
    : files_(files),
      settings_(std::move(settings)),
      clock_(clock),
      random_(random),
      log_(log),
      lock_(std::move(lock)) {}
DiskSnapshots::~DiskSnapshots() = default;

Result<std::unique_ptr<DiskSnapshots>> DiskSnapshots::open(FileSystem& files,
                                                           SnapshotSettings settings, Clock& clock,
                                                           Random& random, Log& log) {
  VERGER_RETURN_IF_ERROR(detail::check_snapshot_program(settings.program));
  VERGER_RETURN_IF_ERROR(make_directories_durably(files, settings.state));
  auto lock = files.lock(settings.state / "lock");
  if (!lock) {
    return lock.error().code == Errc::kRefused
               ? Error{Errc::kUnavailable,
                       fmt::format("{}: another backup from a disk snapshot is under way: repeat "
                                   "this one when it has ended",
                                   settings.state.string())}
               : lock.error();
  }
  return std::unique_ptr<DiskSnapshots>(
      new DiskSnapshots(files, std::move(settings), clock, random, log, *std::move(lock)));
}

Path DiskSnapshots::beside(const Note& note, const char* ending) const {
  return settings_.state / (note.id + ending);
}

std::string DiskSnapshots::printed(const Note& note, const char* ending) const {
  const auto bytes = read_file(files_, beside(note, ending), kMostPrinted);
  return bytes ? std::string(as_text(*bytes)) : std::string();
}

Result<std::vector<DiskSnapshots::Note>> DiskSnapshots::notes() const {
  VERGER_TRY(const auto entries, files_.list(settings_.state));
  std::vector<Note> out;
  for (const auto& entry : entries) {
    if (entry.is_directory || !entry.name.ends_with(kNoteEnding)) {
      continue;
    }
    const Path path = settings_.state / entry.name;
    VERGER_TRY(const auto bytes, read_file(files_, path));
    const auto note = json::parse(as_text(bytes), nullptr, /*allow_exceptions=*/false);
    const auto text = [&note](const char* name) {
      const auto found = note.is_object() ? note.find(name) : note.end();
      return found != note.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    if (text("id") + kNoteEnding != entry.name || text("volume").empty()) {
      return Error{Errc::kCorruption,
                   fmt::format("{}: this note of a disk snapshot cannot be read: delete the "
                               "snapshot {} by hand, then the file",
                               path.string(), Path(entry.name).stem().string())};
    }
    out.push_back({.id = text("id"),
                   .volume = text("volume"),
                   .database = text("database"),
                   .index = text("index")});
  }
  // The last one first.
  std::ranges::sort(out, std::ranges::greater(), &Note::id);
  return out;
}

Result<void> DiskSnapshots::write_note(const Note& note) {
  const auto text = json{{"id", note.id},
                         {"volume", note.volume},
                         {"database", note.database.string()},
                         {"index", note.index.string()},
                         {"createdAt", format_ticks(clock_.now())}}
                        .dump();
  return write_file_durably(files_, beside(note, kNoteEnding), as_bytes(text));
}

Result<void> DiskSnapshots::remove_note(const Note& note) {
  for (const auto* ending : {kOutputEnding, kErrorsEnding, kNoteEnding}) {
    if (auto removed = files_.remove(beside(note, ending));
        !removed && removed.error().code != Errc::kNotFound) {
      return removed;
    }
  }
  return files_.sync_directory(settings_.state);
}

Result<void> DiskSnapshots::start(Note note, const char* action) {
  auto program = detail::SnapshotProgram::start(
      {.program = settings_.program,
       .action = action,
       .environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                       "LANG=C.UTF-8",
                       // It would complain of the lock that it inherits.
                       "LVM_SUPPRESS_FD_WARNINGS=1", "VERGER_SNAPSHOT_ID=" + note.id,
                       "VERGER_SNAPSHOT_VOLUME=" + note.volume,
                       "VERGER_SNAPSHOT_DATABASE=" + note.database.string(),
                       "VERGER_SNAPSHOT_INDEX=" + note.index.string()},
       .output = beside(note, kOutputEnding),
       .errors = beside(note, kErrorsEnding),
       .lock = settings_.state / "running"});
  const auto now = clock_.monotonic();
  if (!program && program.error().code == Errc::kUnavailable) {
    waiting_since_ = waiting_since_.value_or(now);
    return now - *waiting_since_ < settings_.limit ? Result<void>() : program.error();
  }
  waiting_since_.reset();
  if (!program) {
    return program.error();
  }
  running_ = std::make_unique<Running>(Running{.note = std::move(note),
                                               .creates = std::string_view(action) == kCreateAction,
                                               .since = now,
                                               .program = *std::move(program)});
  return {};
}

Result<std::optional<int>> DiskSnapshots::status() {
  const auto status = running_->program->status();
  if (!status && clock_.monotonic() - running_->since > settings_.limit) {
    const auto id = running_->note.id;
    running_.reset();
    return Error{Errc::kTimeout,
                 fmt::format("{}: it did not end within {} s for the disk snapshot {}, and was "
                             "killed",
                             settings_.program.string(), settings_.limit.count() / 1000, id)};
  }
  return status;
}

Result<StepOutcome> DiskSnapshots::step_delete() {
  if (!running_) {
    VERGER_TRY(auto left, notes());
    if (left.empty()) {
      return snapshot_done();
    }
    VERGER_RETURN_IF_ERROR(start(std::move(left.front()), kDeleteAction));
    return look_again();
  }
  // One that makes a snapshot, for a backup that was stopped: it is not killed in the middle.
  const bool was_creating = running_->creates;
  const auto seen = status();
  if (!seen && !was_creating) {
    return seen.error();
  }
  if (seen && !*seen) {
    return look_again();
  }
  if (was_creating) {
    running_.reset();
    return more_of_snapshot();
  }
  const auto ended = *seen;
  const auto note = running_->note;
  running_.reset();
  if (*ended != 0) {
    return Error{
        Errc::kUnavailable,
        fmt::format("the disk snapshot {} (volume \"{}\" of {}) could not be deleted: {} "
                    "delete ended with status {}: {}; it is tried again before the next "
                    "one is made; by hand: delete it, then {}",
                    note.id, note.volume, note.database.string(), settings_.program.string(),
                    *ended, shortened(printed(note, kErrorsEnding)),
                    beside(note, kNoteEnding).string())};
  }
  VERGER_FAILPOINT("backup.snapshot.after-delete");
  VERGER_RETURN_IF_ERROR(remove_note(note));
  log_.info("disk snapshot deleted", {{"snapshot", note.id}, {"volume", note.volume}});
  return more_of_snapshot();
}

Result<StepOutcome> DiskSnapshots::step_create(const Path& database, const Path& index) {
  if (id_.empty()) {
    VERGER_TRY(const auto of_database, stat_of(database));
    const auto of_index = stat_of(index);  // a server that has never run has none
    if (!of_index && of_index.error().code != Errc::kNotFound) {
      return of_index.error();
    }
    volumes_ = !of_index || of_database.st_dev == of_index->st_dev
                   ? std::vector{kBothVolumes}
                   : std::vector{kIndexVolume, kDatabaseVolume};
    id_ = fmt::format("verger-{:016x}", random_.next());
    source_.state = SourceState::kFrozen;
  }
  if (!running_) {
    if (volumes_.empty()) {
      return snapshot_done();
    }
    const Note note{.id = fmt::format("{}-{}", id_, volumes_.front() == kDatabaseVolume ? 2 : 1),
                    .volume = volumes_.front(),
                    .database = database,
                    .index = index};
    // Before anything is made: a crash from here on leaves a name to delete.
    VERGER_RETURN_IF_ERROR(write_note(note));
    VERGER_FAILPOINT("backup.snapshot.before-create");
    VERGER_RETURN_IF_ERROR(start(note, kCreateAction));
    return look_again();
  }
  VERGER_TRY(const auto ended, status());
  if (!ended) {
    return look_again();
  }
  const auto note = running_->note;
  running_.reset();
  VERGER_FAILPOINT("backup.snapshot.after-create");
  if (*ended != 0) {
    return Error{Errc::kUnavailable,
                 fmt::format("{} create ended with status {} for volume \"{}\" of {}: {}",
                             settings_.program.string(), *ended, note.volume, database.string(),
                             shortened(printed(note, kErrorsEnding)))};
  }
  VERGER_RETURN_IF_ERROR(take_paths(note));
  log_.info("disk snapshot made", {{"snapshot", note.id}, {"volume", note.volume}});
  volumes_.erase(volumes_.begin());
  return more_of_snapshot();
}

Result<void> DiskSnapshots::take_paths(const Note& note) {
  const auto output = printed(note, kOutputEnding);
  const auto take = [&](const std::string& name, const Path& live, Path& into) -> Result<void> {
    into = value_in(output, name);
    if (!into.is_absolute()) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("{} create printed no line \"{}=/PATH\", where the snapshot of {} "
                               "can be read",
                               settings_.program.string(), name, live.string())};
    }
    VERGER_TRY(const auto mounted, stat_of(into));
    VERGER_TRY(const auto original, stat_of(live));
    if (mounted.st_dev == original.st_dev && mounted.st_ino == original.st_ino) {
      return Error{Errc::kRefused,
                   fmt::format("{} create named {}, which is the directory that the server works "
                               "on, and no snapshot of it",
                               settings_.program.string(), into.string())};
    }
    return {};
  };
  if (note.volume != kIndexVolume) {
    VERGER_RETURN_IF_ERROR(take(kDatabaseVolume, note.database, source_.directory));
    // Without it the copy would be one of an empty database.
    VERGER_RETURN_IF_ERROR(stat_of(source_.directory / "writer.chk"));
  }
  if (note.volume == kDatabaseVolume) {
    return {};
  }
  const auto below = note.index.lexically_relative(note.database);
  const bool is_below = !below.empty() && *below.begin() != "..";
  if (note.volume == kBothVolumes && is_below && value_in(output, kIndexVolume).empty()) {
    source_.index_directory = source_.directory / below;
    return {};
  }
  return take(kIndexVolume, note.index, source_.index_directory);
}

Result<StepOutcome> MakeSnapshotsJob::step(Budget /*budget*/) {
  if (clean_) {
    return snapshots_.step_create(database_, index_);
  }
  VERGER_TRY(const auto outcome, snapshots_.step_delete());
  clean_ = outcome.kind == StepOutcome::Kind::kDone;
  return clean_ ? more_of_snapshot() : outcome;
}

}  // namespace verger::backup
