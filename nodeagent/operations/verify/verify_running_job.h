#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/verify/running_files.h"
#include "engine/verify/verify_database_job.h"
#include "nodeagent/operations/jobs/paced_job.h"

namespace verger::agent {

/// What to do about damage, by the file that has it.
enum class Remedy : std::uint8_t {
  kRefill,         ///< chunk files and checkpoints: from a peer, or from a backup
  kIndex,          ///< tables and their filters: made anew from the log
  kFilter,         ///< the existence filter: made anew at the next start
  kScavengeState,  ///< its directory is removed; the next scavenge begins anew
};
std::string_view to_string(Remedy remedy);

/// What a verification found in the files of a running node.
struct FoundDamage {
  std::string file;  ///< below the database directory where it lies there, else as it is
  std::optional<std::uint64_t> offset{};
  std::string text;
  Remedy remedy = Remedy::kRefill;
};

/// Verifies the files of a node beside its server. Errors: kConflict (they were replaced or cut
/// meanwhile), kNoSpace (for sorting, or more is held of removed tables than is free), those of
/// reading.
class VerifyRunningJob final : public MeteredJob {
 public:
  struct Place {
    Path directory;
    Path index_directory;
    Path scratch;
  };
  /// All outlive it; `seed` is for names of temporary files.
  VerifyRunningJob(FileSystem& files, Place place, Clock& clock, Log& log, std::uint64_t seed);
  ~VerifyRunningJob() override;

  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override;

  // once it is done
  [[nodiscard]] const verify::VerifyTotals& totals() const { return totals_; }
  [[nodiscard]] const std::vector<FoundDamage>& damage() const { return damage_; }
  [[nodiscard]] std::int64_t damage_count() const { return damage_count_; }
  [[nodiscard]] std::int64_t missing_streams() const { return missing_streams_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  Result<void> begin();
  Result<void> finish();
  Result<void> check_room();
  [[nodiscard]] Result<void> check_scratch() const;

  FileSystem& files_;
  Place place_;
  Clock& clock_;
  Log& log_;
  SeededRandom random_;
  std::unique_ptr<verify::RunningFiles> running_;
  std::optional<verify::VerifyDatabaseJob> job_;
  verify::VerifyTotals totals_;
  std::vector<FoundDamage> damage_;
  std::int64_t damage_count_ = 0;
  std::int64_t missing_streams_ = 0;
  std::vector<std::string> notes_;
  Monotonic next_look_at_room_{};
};

}  // namespace verger::agent
