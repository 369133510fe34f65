#pragma once

#include <memory>

#include "engine/log/transaction_log.h"

namespace verger::log::detail {

/// What a log is made of and on, the same as long as it is open.
struct LogParts {
  FileSystem& files;
  Path directory;
  LogOptions options;
  Clock& clock;
  Random& random;
  Log& log;
  std::int32_t chunk_size = 0;
  std::unique_ptr<FileLock> lock;  ///< null: read-only
  bool truncated = false;          ///< opening carried out a pending truncation
};

}  // namespace verger::log::detail
