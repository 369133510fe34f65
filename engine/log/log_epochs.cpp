#include <fmt/format.h>
#include <ranges>

#include "engine/log/detail/log_state.h"

namespace verger::log {
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

/// epoch.chk may be -1, or behind: it is written after the record, and by those who process the
/// log. Without it the newest epoch is looked for from the end, chunk by chunk.
Result<void> TransactionLog::State::find_epochs() const {
  const std::lock_guard guard(epoch_mutex);
  if (epochs_complete) {
    return {};
  }
  const auto live = chunks();
  auto known = epochs.last();
  if (!known) {
    for (const auto& chunk : std::views::reverse(live)) {
      VERGER_TRY(const auto found, epochs_in(chunk, chunk->start_position()));
      if (!found.empty()) {
        VERGER_TRY(epochs, detail::follow_epochs(live, found.back().position));
        break;
      }
    }
  } else {
    // What lies below the chaser's checkpoint has been processed, epochs included.
    LogPosition from = known->position;
    {
      const std::lock_guard lock_checkpoints(checkpoint_mutex);
      from = std::max(from, checkpoints.chaser);
    }
    for (const auto& chunk : live) {
      if (chunk->end_position() <= from) {
        continue;
      }
      VERGER_TRY(auto found, epochs_in(chunk, from));
      for (const auto& epoch : found) {
        if (epoch.position > known->position) {
          known = epoch;
          epochs.add(epoch);
        }
      }
    }
  }
  epochs_complete = true;
  if (const auto last = epochs.last(); last && options.access == Access::kWrite) {
    const std::lock_guard lock_checkpoints(checkpoint_mutex);
    checkpoints.epoch = last->position;
  }
  return {};
}

Result<void> TransactionLog::State::note_epochs_of(const std::shared_ptr<const Chunk>& chunk) {
  VERGER_TRY(auto found, epochs_in(chunk, chunk->start_position()));
  if (found.empty()) {
    return {};
  }
  const std::lock_guard guard(epoch_mutex);
  const auto newest = found.back().position;
  for (const auto& epoch : found) {
    epochs.add(epoch);
  }
  const std::lock_guard lock_checkpoints(checkpoint_mutex);
  checkpoints.epoch = newest;
  return {};
}

const EpochHistory& TransactionLog::epochs() const {
  if (const auto found = state_->find_epochs(); !found) {
    state_->log.error("cannot read the log's epochs", {{"error", found.error().message}});
  }
  return state_->epochs;
}

}  // namespace verger::log
