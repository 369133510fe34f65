#pragma once

#include <cstdint>
#include <string>

#include "engine/base/file_system.h"

namespace verger::bench {

/// A database to measure on: `streams` streams of `events_each` events, visited once in each round
/// in a random order. `limited_percent` of them get a $maxCount in the first round. Made as
/// `verger-db generate` makes it.
struct Workload {
  std::string name;
  std::uint64_t streams = 0;
  std::uint64_t events_each = 0;
  std::int64_t max_count = 0;
  int limited_percent = 60;
  std::size_t data_size = 160;
  std::int32_t chunk_size = 256 * 1024 * 1024;

  [[nodiscard]] std::uint64_t events() const { return streams * events_each; }
  /// A twelfth of the case, with chunks as much smaller.
  void shrink() {
    constexpr int kPart = 12;
    streams /= kPart;
    chunk_size /= kPart;
  }
};

/// Writes log and index to `directory`, which must not exist.
Result<void> generate(const Workload& workload, const Path& directory);

}  // namespace verger::bench
