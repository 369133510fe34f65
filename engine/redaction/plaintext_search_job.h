#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/redaction/plaintext_digests.h"

namespace verger::redaction {

/// What was found in one file.
struct SearchedFile {
  Path path;
  std::uint64_t size = 0;
  PlaintextScanner::Found found{};
  std::string problem{};  ///< why it was not searched, or not to its end; empty: it was
  /// It was searched, and holds neither a whole text nor a part of one, parts in the records of
  /// other events apart: events resemble each other.
  [[nodiscard]] bool clean() const;
};

/// Which files are searched.
struct SearchedPlaces {
  std::vector<Path> directories{};  ///< every file in them, and in those in them
  /// Of these directories only files for which it is true; empty: all.
  std::function<bool(const Path&)> wanted{};
  std::vector<Path> files{};  ///< besides
};

/// Looks for texts in every file of directories and of those in them, whatever the file is: chunks
/// of any version, temporary files, index, scavenging.db, checkpoints. Nothing is changed. What is
/// not read: files that were removed and are held open, free blocks of the disk, and what links
/// lead to outside. One thread.
class PlaintextSearchJob final : public Job {
 public:
  /// All but the directories outlive it. A directory inside another one is searched once.
  PlaintextSearchJob(FileSystem& files, const PlaintextDigests& digests,
                     std::vector<Path> directories);
  /// The same of some files alone.
  PlaintextSearchJob(FileSystem& files, const PlaintextDigests& digests, SearchedPlaces places);
  ~PlaintextSearchJob() override;
  /// Errors: a directory cannot be listed; kCancelled.
  Result<StepOutcome> step(Budget budget) override;

  [[nodiscard]] std::uint64_t bytes_done() const;
  [[nodiscard]] std::uint64_t bytes_total() const;
  /// By path; complete once the job is done.
  [[nodiscard]] const std::vector<SearchedFile>& files() const;
  /// The same, handed over.
  [[nodiscard]] std::vector<SearchedFile> take_files();
  [[nodiscard]] std::atomic<bool>& stop_flag();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::redaction
