#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "engine/log/chunk.h"
#include "engine/log/detail/known_checkpoints.h"
#include "engine/log/detail/live_chunks.h"
#include "engine/log/epoch.h"

namespace verger::log::detail {

inline constexpr std::string_view kEpochStream = "$epoch-information";

/// The epochs of a log. epoch.chk may be -1, or behind: it is written after the record, and by
/// those who process the log. What it does not lead to is looked for once it is needed. Safe from
/// any thread, but for history(), whose result others may change.
class KnownEpochs {
 public:
  /// `epochs`: the chain from epoch.chk. The others outlive this; `checkpoints` gets what is found,
  /// where the log is `written`.
  KnownEpochs(EpochHistory epochs, const LiveChunks& chunks, KnownCheckpoints& checkpoints,
              bool written)
      : chunks_(chunks), checkpoints_(checkpoints), written_(written), epochs_(std::move(epochs)) {}

  /// Looks for what is not known, once. Errors: kCorruption, kIo.
  Result<void> find();
  [[nodiscard]] const EpochHistory& history() const { return epochs_; }

  /// What an append has made durable.
  void add(std::span<const Epoch> epochs);
  /// Takes the epochs of a chunk received whole, which no append has seen, in place of all from its
  /// start on.
  Result<void> take(const std::shared_ptr<const Chunk>& chunk);
  /// The log ends at `end` now.
  void truncate(LogPosition end);

 private:
  const LiveChunks& chunks_;
  KnownCheckpoints& checkpoints_;
  bool written_;
  std::mutex mutex_;  ///< guards the next two
  EpochHistory epochs_;
  bool complete_ = false;
};

}  // namespace verger::log::detail
