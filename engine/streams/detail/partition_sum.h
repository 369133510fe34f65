#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/result.h"
#include "engine/base/types.h"
#include "engine/streams/detail/event_spill.h"

namespace verger::streams::detail {

/// A sum of digests, as little-endian numbers modulo 2^256, and how many they are.
class DigestSum {
 public:
  void add(const Sha256Digest& digest);
  void add(const DigestSum& other);
  [[nodiscard]] Sha256Digest value() const;
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  void add_words(const std::array<std::uint64_t, 4>& words);

  std::array<std::uint64_t, 4> words_{};
  std::uint64_t count_ = 0;
};

/// The sum over what readers see of one partition of spilled events. It is read twice, first for
/// what decides about its streams, then for the sum; a small one stays in memory between. One
/// thread uses it; different partitions may be summed side by side.
class PartitionSum {
 public:
  /// Bytes of a partition that stays in memory, as it is spilled; its events take twice as much.
  static constexpr std::uint64_t kMostKept = 8ULL << 20U;

  /// The spill, to which nothing is added any longer, outlives it.
  PartitionSum(const EventSpill& spill, std::size_t partition, Ticks now,
               std::uint64_t most_kept = kMostKept);

  /// Continues with a segment; true: there is none left. Errors: those of EventSpill::read.
  Result<bool> step();
  /// All that is left; outcome() says how it went.
  void finish();
  [[nodiscard]] const Result<bool>& outcome() const { return outcome_; }

  [[nodiscard]] std::size_t partition() const { return partition_; }
  [[nodiscard]] const DigestSum& sum() const { return sum_; }
  /// Events, not in the sum, whose number is that of another visible one of their stream, before
  /// them in the log: one of these is what readers see.
  [[nodiscard]] std::span<const SpilledEvent> repeated() const { return repeated_; }

 private:
  struct Stream {
    EventNumber last{-1};
    EventNumber last_added{-1};
    // From the newest metadata event.
    EventNumber metadata_number{-1};
    SpilledLimits limits;
  };
  struct KeyHash {
    std::size_t operator()(const StreamKey& key) const {
      return load_le<std::uint64_t>(key.data() + 8);
    }
  };

  void learn(const SpilledEvent& event);
  [[nodiscard]] bool visible(const SpilledEvent& event, const Stream& own) const;
  void add(const SpilledEvent& event);

  const EventSpill& spill_;
  std::size_t partition_;
  Ticks now_;
  bool kept_;                         ///< all of it stays in memory
  bool summing_ = false;              ///< no longer learning
  std::size_t segment_ = 0;           ///< the next one
  std::vector<SpilledEvent> events_;  ///< of the segments that were read, or of the latest one
  std::unordered_map<StreamKey, Stream, KeyHash> streams_;
  DigestSum sum_;
  std::vector<SpilledEvent> repeated_;
  Result<bool> outcome_ = false;
};

}  // namespace verger::streams::detail
