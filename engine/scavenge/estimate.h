#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/job.h"
#include "engine/scavenge/preview.h"
#include "engine/scavenge/removal_rule.h"

namespace verger::scavenge {

/// Records and their bytes, framing included.
struct Volume {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  Volume& operator+=(const Volume& other) {
    records += other.records;
    bytes += other.bytes;
    return *this;
  }
  friend bool operator==(const Volume&, const Volume&) = default;
};

/// A chunk file that the scavenge would look at.
struct ChunkEstimate {
  std::string file;
  std::int32_t start = 0;
  std::int32_t end = 0;
  double weight = 0;
  bool executed = false;  ///< its weight exceeds the threshold; what follows is 0 otherwise
  Volume kept;
  Volume removed;
  std::uint64_t file_bytes_before = 0;
  std::uint64_t file_bytes_after = 0;
};

/// Neighbouring chunk files, executed before or not, that would become one.
struct MergeEstimate {
  std::int32_t start = 0;
  std::int32_t end = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
};

struct TableEstimate {
  std::string file;
  int level = 0;
  int position = 0;
  std::uint64_t entries_kept = 0;
  std::uint64_t entries_removed = 0;
  bool rewritten = false;
  std::uint64_t file_bytes_before = 0;
  std::uint64_t file_bytes_after = 0;  ///< without bloom filters, whose size stays
};

struct StreamEstimate {
  std::string stream;
  Volume removed;
};

/// What a scavenge of one point would do.
struct Estimate {
  std::vector<ChunkEstimate> chunks;
  std::vector<MergeEstimate> merges;
  std::vector<TableEstimate> tables;
  std::array<Volume, kRemovalRuleCount> by_rule{};  ///< by RemovalRule
  std::vector<StreamEstimate> top;                  ///< by bytes, the greatest first
  bool top_is_exact = true;  ///< false: of very many streams the smaller ones were not all followed
  std::uint64_t streams_losing = 0;  ///< streams that lose records; a lower bound if not exact

  Volume removed;
  Volume kept;  ///< in executed chunks
  std::uint64_t chunks_executed = 0;
  std::uint64_t chunks_skipped = 0;
  std::uint64_t entries_removed = 0;
  std::uint64_t entries_kept = 0;
  /// Size of files before - after, of chunks, merges and tables; may be negative.
  std::int64_t space_saved = 0;

  /// What the run would read and write from the files, for its duration.
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  /// Files that stand beside what they replace; the largest of each kind.
  std::uint64_t largest_rewrite = 0;
  std::uint64_t largest_merge = 0;
  std::uint64_t largest_table = 0;
  std::uint64_t state_bytes = 0;  ///< scavenging.db at this stage
  /// Free space the run needs beside what is there now, with so many threads.
  std::uint64_t disk_need = 0;
};

/// Counts what the scavenge of a finished Preview would change, by the rules the scavenge itself
/// applies. Reads executed chunks and the index tables once; writes nothing. Chunks are counted
/// side by side where the preview's options let threads work in the background; the result is the
/// same.
class EstimateJob final : public Job {
 public:
  /// `preview` has ended with kDone, and outlives the job. `top`: so many streams are listed.
  EstimateJob(Preview& preview, std::size_t top);
  ~EstimateJob() override;
  Result<StepOutcome> step(Budget budget) override;
  /// Once step() said kDone.
  [[nodiscard]] const Estimate& estimate() const { return estimate_; }
  /// What would go of the chunks counted so far.
  [[nodiscard]] Volume removed_so_far() const;
  /// For progress: bytes of the files counted so far, and in all.
  [[nodiscard]] std::uint64_t bytes_done() const;
  [[nodiscard]] std::uint64_t bytes_total() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  Estimate estimate_;
};

}  // namespace verger::scavenge
