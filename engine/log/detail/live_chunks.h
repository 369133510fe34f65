#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "engine/log/chunk.h"

namespace verger::log::detail {

/// The live chunks of a log, in order, and those that were replaced while readers still have them.
/// all() and at() are safe from any thread. Chunks come, go and change places under structure(),
/// which is held meanwhile: by the appending thread, and by a job's that switches chunks in.
class LiveChunks {
 public:
  using Chunks = std::vector<std::shared_ptr<const Chunk>>;

  explicit LiveChunks(Chunks chunks) : table_(std::move(chunks)) {}

  [[nodiscard]] Chunks all() const;
  /// The chunk that covers `position`; nullptr: none does.
  [[nodiscard]] std::shared_ptr<const Chunk> at(LogPosition position) const;

  [[nodiscard]] std::mutex& structure() { return structure_; }

  // Below, the caller holds structure().

  /// Puts `chunk` in place of all it overlaps; returns those.
  Chunks put(std::shared_ptr<const Chunk> chunk);
  /// Puts neighbouring chunks in place of all from the start of the first of them, at once; returns
  /// those.
  Chunks put_at_end(const Chunks& chunks);
  /// The files of replaced chunks go with their last readers.
  void retire(const Chunks& replaced);
  /// The log ends before chunk `first` now: readers of the chunks from there on are refused, of
  /// replaced ones as well, whose names may soon belong to new chunks.
  void refuse_from(ChunkNumber first);
  void replace_all(Chunks chunks);

 private:
  std::mutex structure_;
  mutable std::mutex mutex_;  ///< guards the next one
  Chunks table_;
  /// Replaced chunks whose files wait for their last reader.
  std::vector<std::weak_ptr<const Chunk>> retired_;
};

}  // namespace verger::log::detail
