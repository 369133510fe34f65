#pragma once

#include "engine/base/file_system.h"

namespace verger {

/// What a file system has beyond FileSystem where a file can have several names.
class FileLinks {
 public:
  virtual ~FileLinks() = default;
  /// Gives a file one more name, durable after sync_directory() of its directory. Errors:
  /// kNotFound, kExists, kNoSpace, kIo; kUnsupported: another file system, or one without links.
  virtual Result<void> link(const Path& from, const Path& to) = 0;
};

/// FileLinks::link of `files`: of the machine's disk, or of one that has FileLinks; others have no
/// links.
Result<void> link_file(FileSystem& files, const Path& from, const Path& to);

}  // namespace verger
