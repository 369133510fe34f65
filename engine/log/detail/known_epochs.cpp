#include "engine/log/detail/known_epochs.h"

#include <algorithm>
#include <ranges>

#include "engine/log/detail/opening.h"

namespace verger::log::detail {
namespace {

/// The epoch records of a chunk at or after `from`.
Result<std::vector<Epoch>> epochs_in(const std::shared_ptr<const Chunk>& chunk, LogPosition from) {
  VERGER_TRY(auto scanner, ChunkScanner::open(chunk, from));
  std::vector<Epoch> found;
  for (;;) {
    VERGER_TRY(const auto record, scanner.next());
    if (!record) {
      return found;
    }
    if (const auto* system = std::get_if<SystemRecord>(&record->record)) {
      VERGER_TRY(auto epoch, decode_epoch_json(system->json));
      found.push_back(epoch);
    }
  }
}

}  // namespace

Result<void> KnownEpochs::find() {
  const std::lock_guard guard(mutex_);
  if (complete_) {
    return {};
  }
  const auto live = chunks_.all();
  auto known = epochs_.last();
  if (!known) {
    // The newest epoch is looked for from the end, chunk by chunk.
    for (const auto& chunk : std::views::reverse(live)) {
      VERGER_TRY(const auto found, epochs_in(chunk, chunk->start_position()));
      if (!found.empty()) {
        VERGER_TRY(epochs_, follow_epochs(live, found.back().position));
        break;
      }
    }
  } else {
    // What lies below the chaser's checkpoint has been processed, epochs included.
    const LogPosition from = std::max(known->position, checkpoints_.values().chaser);
    for (const auto& chunk : live) {
      if (chunk->end_position() <= from) {
        continue;
      }
      VERGER_TRY(auto found, epochs_in(chunk, from));
      for (const auto& epoch : found) {
        if (epoch.position > known->position) {
          known = epoch;
          epochs_.add(epoch);
        }
      }
    }
  }
  complete_ = true;
  if (const auto last = epochs_.last(); last && written_) {
    checkpoints_.set_epoch(last->position);
  }
  return {};
}

void KnownEpochs::add(std::span<const Epoch> epochs) {
  const std::lock_guard guard(mutex_);
  for (const auto& epoch : epochs) {
    epochs_.add(epoch);
  }
  if (!epochs.empty()) {
    checkpoints_.set_epoch(epochs.back().position);
  }
}

Result<void> KnownEpochs::take(const std::shared_ptr<const Chunk>& chunk) {
  VERGER_TRY(const auto found, epochs_in(chunk, chunk->start_position()));
  {
    const std::lock_guard guard(mutex_);
    epochs_.truncate(chunk->start_position());
  }
  add(found);
  return {};
}

void KnownEpochs::truncate(LogPosition end) {
  const std::lock_guard guard(mutex_);
  epochs_.truncate(end);
  if (!epochs_.last()) {
    complete_ = false;
  }
}

}  // namespace verger::log::detail
