#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backup/backup_check.h"
#include "engine/backup/blob_store.h"
#include "engine/backup/manifest.h"
#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/base/uuid.h"

namespace verger::backup {

/// A generation that is there; `damage` where its manifest cannot be read.
struct GenerationEntry {
  std::string id;
  std::optional<Manifest> manifest;
  std::string damage;
};

/// A backup that runs, or was interrupted: what it has stored so far, which the next backup of the
/// same node need not read again, and which no deletion removes.
struct BackupSession {
  std::string id;
  std::string node;
  Ticks updated_at;
  std::vector<BackedUpFile> files;
};

/// Generations, backups in progress and deletions in a store (docs/operations/backup.md,
/// "Repository"). Safe for several processes at once; one thread for each object.
class Repository {
 public:
  enum class Create : std::uint8_t { kNo, kIfMissing };
  /// Errors: kNotFound (no repository there), kUnsupported (of a newer version), kCorruption,
  /// kIo. `store` outlives it. `random`: for the id of a new one.
  static Result<Repository> open(BlobStore& store, Create create, Random& random = system_random());

  [[nodiscard]] BlobStore& store() const { return *store_; }
  /// By which two programs see that they mean the same repository, whatever each calls it. Zero: it
  /// was made before there were ids; the next backup gives it one.
  [[nodiscard]] const Uuid& id() const { return id_; }

  /// By id, so by time.
  Result<std::vector<GenerationEntry>> generations() const;
  /// Of the same, without reading them.
  Result<std::vector<std::string>> generation_ids() const;
  /// `id`: one, or "latest", of `node` where that is not empty. Errors: kNotFound, kCorruption
  /// (with "latest" also where it cannot be seen whether a damaged one is the latest).
  Result<Manifest> load(std::string_view id, std::string_view node = {}) const;
  /// Makes the generation one that is there: the last step of a backup. Error: kConflict, as of
  /// update_session().
  Result<void> save(const Manifest& manifest);

  // --- Backups in progress ---

  /// To be called before the first look at what is stored. Error: kUnavailable while a deletion
  /// removes content: try again.
  Result<void> begin_session(const BackupSession& session);
  /// Error: kConflict where the session was ended meanwhile, as one of a backup that was killed:
  /// what the backup relies on may be gone.
  Result<void> update_session(const BackupSession& session);
  /// The backup ends without a manifest: the next one may reuse what it has stored, and a deletion
  /// need not wait for it.
  Result<void> release_session(BackupSession session);
  Result<void> end_session(std::string_view id);
  Result<std::vector<BackupSession>> sessions() const;

  // --- Checks of generations ---

  /// How many of each kind are kept of a generation: the newest.
  static constexpr std::size_t kKeptChecks = 20;
  /// Kept as long as the generation. Error: kNotFound (no such generation).
  Result<void> add_check(std::string_view id, const BackupCheck& check);
  /// By time; records that are damaged are left out.
  Result<std::vector<BackupCheck>> checks(std::string_view id) const;
  /// Of every generation that was checked, by its id.
  Result<std::map<std::string, LatestChecks>> latest_checks() const;

  // --- Deletion, in two phases ---

  /// The first phase: the generation is no longer listed and cannot be restored; all its content
  /// stays. Errors: kNotFound.
  Result<void> mark_deleted(std::string_view id, Ticks now);
  /// Until the second phase: it is a generation again. Errors: kNotFound.
  Result<void> undelete(std::string_view id);
  struct Marked {
    std::string id;
    Ticks at;
  };
  Result<std::vector<Marked>> marked() const;
  struct Swept {
    std::uint64_t generations = 0;
    std::uint64_t blobs = 0;
    std::uint64_t bytes = 0;
  };
  /// The second phase, of what was marked before `before`: content that no generation, and no mark
  /// that stays, needs is removed. Repeating it after a crash continues it. Sessions not updated
  /// since `abandoned` count as dead, and go. Errors: kUnavailable (a backup runs; it says which),
  /// kCorruption (a generation's manifest is damaged, so that what it needs is not known).
  Result<Swept> sweep(Ticks before, Ticks abandoned);

 private:
  Repository(BlobStore& store, const Uuid& id) : store_(&store), id_(id) {}
  static Result<Repository> create_in(BlobStore& store, Random& random);
  Result<Swept> sweep_alone(Ticks before);
  Result<void> end_abandoned(Ticks abandoned);
  Result<void> put_session(const BackupSession& session);
  Result<void> check_alive(std::string_view id) const;
  Result<std::optional<BackupCheck>> read_check(std::string_view name) const;
  /// Of generations other than `kept`.
  Result<void> remove_checks_except(const std::set<std::string>& kept);
  BlobStore* store_;
  Uuid id_;
};

}  // namespace verger::backup
