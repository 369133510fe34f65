#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/wide_memory.h"
#include "engine/scavenge/scavenge_state.h"

namespace verger::scavenge::detail {

/// The limits of all streams kept by hash, in memory, where they are few enough. Immutable: any
/// thread may look.
class LimitsTable {
 public:
  /// So many streams whose records go, at 24 bytes and a third, may be held.
  static constexpr std::size_t kMostStreams = 3'000'000;

  /// nullptr when there are more. `pause` is called now and then; its error ends it.
  static Result<std::unique_ptr<const LimitsTable>> load(
      ScavengeState& state, const std::function<Result<void>()>& pause);

  /// Fetches the memory that find() will look at.
  void expect(StreamHash hash) const { __builtin_prefetch(slots_.data() + slot_of(hash)); }
  /// Puts a stream's limits into `limits`; false when it keeps everything.
  bool find(StreamHash hash, bool metastream, StreamLimits& limits) const;

 private:
  static constexpr std::uint32_t kPlain = 0xFFFF'FFFF;
  static constexpr std::uint32_t kFree = 0xFFFF'FFFE;
  struct Slot {
    std::uint64_t hash = 0;
    std::int64_t discard = 0;
    std::uint32_t rest = kFree;  ///< kPlain: nothing but the discard point; or its place in rest_
    bool metastream = false;
    std::optional<RemovalRule> discarded_by;
  };
  static_assert(sizeof(Slot) == 24);

  explicit LimitsTable(std::size_t streams);
  [[nodiscard]] std::size_t slot_of(StreamHash hash) const;
  void put(StreamHash hash, const StreamLimits& limits);

  std::vector<Slot, WideMemory<Slot>> slots_;  ///< a power of two of them
  std::vector<StreamLimits> rest_;
};

}  // namespace verger::scavenge::detail
