#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/random.h"
#include "engine/tool/workload.h"

namespace verger::tool {

/// What each stream of a workload is: its name, its number of events, its setting. A function of
/// the stream's number; no memory for each stream but its name's digits.
class WorkloadPlan {
 public:
  enum class Ending : std::uint8_t { kNone, kSoftDeleted, kDeleted };

  WorkloadPlan(const Workload& workload, Random& random);

  [[nodiscard]] std::uint64_t streams() const { return workload_.streams; }
  [[nodiscard]] std::uint64_t events_of(std::uint64_t stream) const {
    return events_each_ + (stream < streams_with_more_ ? 1 : 0);
  }
  /// Events of the streams before this one.
  [[nodiscard]] std::uint64_t first_event(std::uint64_t stream) const {
    return stream * events_each_ + std::min(stream, streams_with_more_);
  }
  /// Valid until the next call.
  [[nodiscard]] std::string_view name(std::uint64_t stream) const;
  /// The metadata written before the first event; empty when there are none.
  [[nodiscard]] std::string metadata(std::uint64_t stream) const;
  [[nodiscard]] Ending ending(std::uint64_t stream) const;

  /// Every stream has one turn in a round, in an order of its own.
  void start_round(Random& random);
  [[nodiscard]] std::uint64_t upcoming_turn() const { return turn_; }
  std::uint64_t next_turn() {
    const auto stream = turn_;
    turn_ += round_step_;
    turn_ -= turn_ >= workload_.streams ? workload_.streams : 0;
    return stream;
  }

 private:
  /// n -> (factor * n + shift) mod count, a permutation.
  struct Permutation {
    std::uint64_t factor = 1;
    std::uint64_t shift = 0;
    [[nodiscard]] std::uint64_t at(std::uint64_t n, std::uint64_t count) const {
      return (factor * n + shift) % count;
    }
  };
  static Permutation permute(std::uint64_t count, Random& random);
  [[nodiscard]] std::size_t setting(std::uint64_t stream) const;

  const Workload& workload_;
  std::uint64_t events_each_;
  std::uint64_t streams_with_more_;  ///< those below it have one event more
  Permutation settings_;
  std::uint64_t round_step_ = 0;
  std::uint64_t turn_ = 0;
  std::uint64_t bounds_[5] = {};  ///< rank below which a stream has the n-th setting
  mutable std::string name_;
  std::size_t digits_;
};

}  // namespace verger::tool
