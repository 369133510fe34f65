#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::backup {

/// What may happen to a database while it is copied.
enum class SourceState : std::uint8_t {
  kStopped,  ///< no server has it open, and none of our programs writes to it
  kLive,     ///< a server or node works on it
  kFrozen,   ///< a disk snapshot: as of one moment, and nothing changes it
};
std::string_view to_string(SourceState state);

struct BackupSource {
  Path directory;
  Path index_directory;  ///< empty: "<directory>/index"
  SourceState state = SourceState::kStopped;
  /// The caller has made sure at the node that no scavenge runs: state of one that was killed does
  /// not count.
  bool scavenge_ruled_out = false;

  [[nodiscard]] Path index() const {
    return index_directory.empty() ? directory / "index" : index_directory;
  }
};

/// The state of a directory on the machine's disk, by its lock and the processes that have files of
/// it open. With kStopped `lock` is held, so that no program of ours opens it for writing
/// meanwhile. `assume_stopped`: only the lock counts, the processes are not looked for.
struct FoundState {
  SourceState state = SourceState::kLive;
  std::unique_ptr<FileLock> lock;
};
Result<FoundState> find_state(FileSystem& files, const Path& directory, bool assume_stopped);

/// Whether a copy of these files, taken now, can be restored. kRefused with the reason: a scavenge
/// or redaction works on them, the log is to be cut, or the server keeps files that cannot be
/// copied while it runs. Changes nothing.
Result<void> check_source(FileSystem& files, const BackupSource& source);

}  // namespace verger::backup
