#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/backup/source.h"
#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/base/log.h"
#include "engine/base/random.h"

namespace verger::backup {

/// How disk snapshots are made (docs/operations/backup.md, "Disk snapshots").
struct SnapshotSettings {
  Path program{};  ///< run as "PROGRAM create" and "PROGRAM delete"; empty: there are none
  /// Directory with a note of each snapshot that has to be deleted; made where it is missing.
  Path state{};
  std::chrono::milliseconds limit = std::chrono::minutes(10);  ///< for each call
};

/// The disk snapshots of one database for one backup, made by a program of the operator's: the
/// index volume first, then the database volume; one where both are on one device. What was made is
/// on disk as a note before it is made, so that it is deleted even after a crash. Of the machine's
/// disk. One at a time in a state directory; one thread.
class DiskSnapshots {
 public:
  /// `files`, of the state directory, and the others outlive it. Errors: kRefused (the program is
  /// none of ours), kNotFound (there is no such program), kUnavailable (another backup uses the
  /// directory), kIo.
  static Result<std::unique_ptr<DiskSnapshots>> open(FileSystem& files, SnapshotSettings settings,
                                                     Clock& clock, Random& random, Log& log);
  /// Kills a program that runs; what it has made is deleted by the next ones.
  ~DiskSnapshots();

  /// One step of deleting all that notes name: kDone once there are none, which is immediately so
  /// where nothing was made. May begin at any step of step_create(). Errors: kUnavailable, naming
  /// the snapshot (the program failed: its note stays), kTimeout, kIo.
  Result<StepOutcome> step_delete();
  /// One step of making snapshots of a database; kDone: they are mounted, and source() is what to
  /// copy. Errors: kUnavailable (the program failed), kInvalidArgument (it did not say where they
  /// are), kRefused (it named the live directory), kTimeout, kIo.
  Result<StepOutcome> step_create(const Path& database, const Path& index);
  [[nodiscard]] const BackupSource& source() const { return source_; }

 private:
  struct Note;
  struct Running;
  DiskSnapshots(FileSystem& files, SnapshotSettings settings, Clock& clock, Random& random,
                Log& log, std::unique_ptr<FileLock> lock);
  Result<std::vector<Note>> notes() const;
  Result<void> write_note(const Note& note);
  Result<void> remove_note(const Note& note);
  Result<void> start(Note note, const char* action);
  /// Its exit status; nullopt: it runs. kTimeout after the limit, and it is killed.
  Result<std::optional<int>> status();
  Result<void> take_paths(const Note& note);
  [[nodiscard]] Path beside(const Note& note, const char* ending) const;
  [[nodiscard]] std::string printed(const Note& note, const char* ending) const;

  FileSystem& files_;
  SnapshotSettings settings_;
  Clock& clock_;
  Random& random_;
  Log& log_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<Running> running_;
  std::optional<Monotonic> waiting_since_{};  ///< for a program of an earlier process
  std::string id_;                            ///< what the ids of this backup's begin with
  std::vector<std::string> volumes_;          ///< still to be made, in this order
  BackupSource source_;
};

/// step_delete(), then step_create(): what an earlier backup left behind goes first.
class MakeSnapshotsJob final : public Job {
 public:
  MakeSnapshotsJob(DiskSnapshots& snapshots, Path database, Path index)
      : snapshots_(snapshots), database_(std::move(database)), index_(std::move(index)) {}
  Result<StepOutcome> step(Budget budget) override;

 private:
  DiskSnapshots& snapshots_;
  Path database_;
  Path index_;
  bool clean_ = false;
};

}  // namespace verger::backup
