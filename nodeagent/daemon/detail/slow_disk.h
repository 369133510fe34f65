#pragma once

#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/base/slow_file_system.h"

namespace verger::agent {

/// For tests: a disk whose syncs take up to as many milliseconds as `file` says at that moment; not
/// longer than ever while it says nothing, or is not there. Each sync that takes longer is logged.
class SlowDisk {
 public:
  /// `disk`, `random` and `log` outlive it, and are used from whichever thread syncs.
  SlowDisk(FileSystem& disk, Path file, Random& random, Log& log);
  FileSystem& files() { return files_; }

 private:
  void wait() const;
  Path file_;
  Random& random_;
  Log& log_;
  SlowFileSystem files_;
};

}  // namespace verger::agent
