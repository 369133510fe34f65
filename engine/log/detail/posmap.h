#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/log/chunk.h"

namespace verger::log::detail {

/// Looks into the position map of a scavenged chunk's file. Only one log position in 256 is kept in
/// memory; a lookup reads the 3 KB between two of them. Safe from any thread.
class Posmap {
 public:
  /// Reads the map once and checks that it ascends. Errors: kCorruption, kIo. `file` must live
  /// longer.
  static Result<Posmap> load(const File& file, const ChunkFooter& footer);

  [[nodiscard]] std::size_t count() const { return count_; }
  /// index < count().
  Result<PosmapEntry> entry(std::size_t index) const;
  struct Found {
    std::size_t index = 0;  ///< count() when all entries are below
    std::optional<PosmapEntry> entry;
  };
  /// The first entry whose log position is not below `local`.
  Result<Found> lower_bound(std::int64_t local) const;
  Result<std::vector<PosmapEntry>> all() const;

 private:
  Posmap(const File& file, const ChunkFooter& footer);
  Result<void> read(std::size_t first, std::vector<PosmapEntry>& entries, std::size_t count) const;

  const File* file_;
  std::uint64_t offset_;
  std::size_t entry_size_;
  std::size_t count_;
  std::vector<std::int64_t> samples_;
};

}  // namespace verger::log::detail
