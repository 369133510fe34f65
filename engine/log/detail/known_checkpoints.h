#pragma once

#include <algorithm>
#include <mutex>

#include "engine/log/transaction_log.h"

namespace verger::log::detail {

/// The numbers of the checkpoint files as the log knows them, which may be ahead of what is stored.
/// The writer's is not among them: it is the log's end. Safe from any thread.
class KnownCheckpoints {
 public:
  explicit KnownCheckpoints(const Checkpoints& values) : values_(values) {}

  [[nodiscard]] Checkpoints values() const {
    const std::lock_guard guard(mutex_);
    return values_;
  }
  void set_chaser(LogPosition position) {
    change([&](Checkpoints& values) { values.chaser = position; });
  }
  void set_epoch(LogPosition position) {
    change([&](Checkpoints& values) { values.epoch = position; });
  }
  void set_proposal(std::int32_t number) {
    change([&](Checkpoints& values) { values.proposal = number; });
  }
  void raise_proposal(std::int32_t number) {
    change([&](Checkpoints& values) { values.proposal = std::max(values.proposal, number); });
  }
  /// The log ends at `end` now.
  void truncate(LogPosition end, LogPosition epoch) {
    change([&](Checkpoints& values) {
      values.epoch = epoch;
      values.chaser = std::min(values.chaser, end);
    });
  }

 private:
  template <class Change>
  void change(const Change& change) {
    const std::lock_guard guard(mutex_);
    change(values_);
  }

  mutable std::mutex mutex_;
  Checkpoints values_;
};

}  // namespace verger::log::detail
