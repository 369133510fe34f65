#pragma once

#include <memory>
#include <vector>

#include "engine/base/file_verification.h"
#include "engine/log/chunk.h"
#include "engine/scavenge/context.h"

namespace verger::scavenge::detail {

/// Compares chunks and index tables with their checksums in threads of its own, several files
/// together, while they and the chunks before them are read: each that RunContext::is_unchecked().
/// One thread uses it; the threads end with it.
class ChecksumsAhead {
 public:
  explicit ChecksumsAhead(RunContext& context) : context_(context) {}

  /// Begins to compare these chunks, which are being read, and some behind them; index tables, too,
  /// once it is known that they are needed. Ends what was begun for other chunks only.
  void begin(const std::vector<const log::Chunk*>& chunks, bool with_tables);
  /// False: finish() would have to wait.
  [[nodiscard]] bool has_compared(const log::Chunk& chunk) const;
  /// Waits for the chunk, one of those that begin() was last called with. Errors: kCorruption, kIo,
  /// kCancelled.
  Result<void> finish(const log::Chunk& chunk);
  /// Waits for the tables that are being compared, and notes them as sound; not for others. Errors
  /// as above.
  Result<void> finish_tables();

 private:
  /// Begins with `start`.
  [[nodiscard]] std::unique_ptr<FileVerification> compare_from(LogPosition start,
                                                               bool with_tables) const;
  /// The one that compares a chunk or table; nullptr: none.
  [[nodiscard]] FileVerification* comparison_of(const void* object) const;

  RunContext& context_;
  std::vector<std::unique_ptr<FileVerification>> comparisons_;  ///< of several files each
};

}  // namespace verger::scavenge::detail
