#pragma once

#include <cstdint>

#include "engine/base/file_system.h"

namespace verger {

/// A file that can begin to write before it is synced.
class EarlyWriteback {
 public:
  virtual ~EarlyWriteback() = default;
  /// The bytes [offset, offset + size) are on their way to the disk; nothing waits for them, and
  /// nothing is promised: sync() does both.
  virtual void start_writeback(std::uint64_t offset, std::uint64_t size) = 0;
};

/// For large files that are synced at their end, which would otherwise wait for all of their bytes.
/// Does nothing where the file has no such thing.
void start_writeback(File& file, std::uint64_t offset, std::uint64_t size);

}  // namespace verger
