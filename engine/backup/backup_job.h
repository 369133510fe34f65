#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "engine/backup/repository.h"
#include "engine/backup/source.h"
#include "engine/base/job.h"
#include "engine/base/log.h"
#include "engine/scavenge/parallel_runner.h"

namespace verger::backup {

enum class WantedDigests : std::uint8_t {
  kNone,
  kLogical,   ///< of the records, in constant memory
  kReadable,  ///< of what clients see, too
};

struct BackupOptions {
  BackupSource source;
  /// As it will be in the manifest; its state is taken from `source`.
  SourceNode node;
  /// A differential backup: what this generation has already is not read again. Of the same node.
  std::optional<Manifest> parent;
  WantedDigests digests = WantedDigests::kNone;
  /// A copy of a running node is restored to its chaser.chk; with this to its writer.chk, as that
  /// of a stopped one always is: a node keeps both when it is started again.
  bool whole_log = false;
  /// Called before the checkpoints are copied: an embedded node saves its own, so that chaser.chk
  /// is that of the moment. May be empty.
  std::function<Result<void>()> before_checkpoints{};
  /// Files copied side by side; the runner decides whether by several threads.
  std::size_t lanes = 1;
  /// What was stored is noted in the repository each time so much more was.
  std::uint64_t session_interval = 256ULL << 20U;
  /// A server cuts no more than this at its start; a restored database is cut to its chaser.
  std::int64_t max_truncation = 256LL << 20U;
};

struct BackupProgress {
  std::string_view phase = "index";
  std::uint64_t done = 0;    ///< bytes, of `total`
  std::uint64_t total = 0;   ///< of the files that are known so far
  std::uint64_t copied = 0;  ///< bytes read and stored
  std::uint64_t reused = 0;  ///< bytes that were stored already
};

/// Copies a database into a repository, in the order that makes a copy of a running node one that
/// can be restored (docs/operations/backup.md, "The order of the copy"), and writes the manifest
/// last.
///
/// Errors: kRefused (check_source(); another node's parent, or one of another log), kUnavailable
/// (the node is behind, or a deletion runs: try again), kConflict (a scavenge or a truncation
/// changed what was copied), kCorruption, kIo, kNoSpace. After an error, and when it is destroyed
/// early, nothing is listed as a backup; what was stored is reused by the next backup of the node.
/// One thread.
class BackupJob final : public Job {
 public:
  /// All but the options outlive it.
  BackupJob(FileSystem& files, Repository& repository, BackupOptions options, Clock& clock,
            Random& random, Log& log, scavenge::ParallelRunner& runner = scavenge::inline_runner());
  ~BackupJob() override;

  Result<StepOutcome> step(Budget budget) override;

  [[nodiscard]] const BackupProgress& progress() const;
  /// Once it is done.
  [[nodiscard]] const Manifest& manifest() const;
  /// After kRefused: the node was restored, or its log cut, since the parent; a backup without a
  /// parent is possible.
  [[nodiscard]] bool is_of_another_log() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The parent for the next backup of `node`: its newest sound generation; nullopt: none.
Result<std::optional<Manifest>> find_parent(const Repository& repository, std::string_view node);

}  // namespace verger::backup
