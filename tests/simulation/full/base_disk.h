#pragma once

#include <cstddef>

#include "engine/base/memory_file_system.h"

namespace verger::sim {

/// Databases that runs start from; all three nodes of a cluster start with copies of one.
enum class StartingPoint : std::uint8_t {
  kNeverScavenged,  ///< no scavenge point in the log
  kUnreachedPoint,  ///< a point that no node has gone to
  kLarger,          ///< as the first, with twice the data
};
inline constexpr std::size_t kStartingPoints = 3;

/// A disk with such a database at /db: chunks with truncated, expired and deleted streams, several
/// index tables. Built once per process; take clones. Not safe from several threads.
const MemoryFileSystem& base_disk(StartingPoint point);

}  // namespace verger::sim
