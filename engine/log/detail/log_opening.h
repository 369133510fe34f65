#pragma once

#include <memory>

#include "engine/log/detail/opening.h"

namespace verger::log::detail {

/// A directory that was judged, and locked where it is to be written.
struct OpenedLog {
  Snapshot snapshot;
  Judgement judgement;
  std::unique_ptr<FileLock> lock;
  bool truncated = false;  ///< a pending truncation was carried out
};

/// Read-only: beside another process that writes. For writing: alone; nothing is changed in a
/// directory that is refused. Errors: as TransactionLog::open().
Result<OpenedLog> open_directory(FileSystem& files, const Path& directory,
                                 const LogOptions& options);

}  // namespace verger::log::detail
