#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/backup/blob_store.h"
#include "engine/backup/manifest.h"
#include "engine/base/job.h"
#include "engine/scavenge/parallel_runner.h"

namespace verger::backup {

struct BackupDamage {
  std::string path;  ///< of the file of the database whose content is damaged
  std::string text;
};

/// Reads every byte that a generation needs from the store, and compares size and SHA-256. Damage
/// is collected, not an error. What chunks and index say is not looked at: that is for those who
/// read a database, over GenerationFiles. One thread.
class VerifyBytesJob final : public Job {
 public:
  /// All outlive it.
  VerifyBytesJob(BlobStore& store, const Manifest& manifest, std::size_t lanes = 1,
                 scavenge::ParallelRunner& runner = scavenge::inline_runner());
  ~VerifyBytesJob() override;
  /// Error: the store cannot be read at all.
  Result<StepOutcome> step(Budget budget) override;

  [[nodiscard]] std::uint64_t done() const;
  [[nodiscard]] std::uint64_t total() const;
  [[nodiscard]] const std::vector<BackupDamage>& damage() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::backup
