#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/backup/repository.h"
#include "engine/backup/sealed_store.h"
#include "engine/base/clock.h"
#include "engine/base/job.h"
#include "engine/base/random.h"

namespace verger::backup {

/// Writes again, with the first key of the key file, what lies in a repository under another one:
/// afterwards no object needs the others. Backups may run meanwhile, with key files that hold both
/// keys; deletions wait. Interrupted, it is continued by running it again. One thread.
class RekeyJob final : public Job {
 public:
  struct Progress {
    std::uint64_t objects = 0;  ///< looked at
    std::uint64_t total = 0;    ///< of them, once they are listed
    std::uint64_t rewritten = 0;
    std::uint64_t bytes = 0;  ///< of content that was written again
  };

  /// `repository` is that of `store`, which has keys. All outlive it.
  RekeyJob(SealedStore& store, Repository& repository, Clock& clock, Random& random);
  ~RekeyJob() override;
  /// Errors: kUnavailable (a deletion removes content), kUnauthorized (an object is under a key
  /// that the key file does not hold), kCorruption (an object is damaged: it is not written again,
  /// so that the damage stays to be seen), those of the store.
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] const Progress& progress() const { return progress_; }

 private:
  struct Copy {
    Sha256Digest name{};
    std::unique_ptr<BlobReader> reader;
    std::unique_ptr<BlobWriter> writer;
    std::uint64_t at = 0;
  };
  Result<void> begin();
  Result<void> next_document();
  Result<void> next_blob();
  Result<void> copy_piece(std::uint64_t most);
  Result<void> keep_session();

  SealedStore& store_;
  Repository& repository_;
  Clock& clock_;
  BackupSession session_;
  Monotonic session_at_{0};
  bool begun_ = false;
  std::vector<std::string> documents_;  ///< still to be looked at; the next one last
  std::vector<Sha256Digest> blobs_;
  std::optional<Copy> copy_;
  Progress progress_;
};

}  // namespace verger::backup
