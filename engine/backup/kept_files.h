#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

/// What a restore left beside a database: the files of before (RestoreOptions::keep_old), or its
/// own in the middle.
namespace verger::backup {

struct RestoredDatabase {
  Path directory;
  Path index_directory;  ///< empty: "<directory>/index"
  /// Do not search /proc for a server that has the files open.
  bool assume_stopped = false;

  [[nodiscard]] Path index() const {
    return index_directory.empty() ? directory / "index" : index_directory;
  }
};

/// A restore, or the way back, that was interrupted.
struct UnfinishedRestore {
  std::string generation;
  /// Only copies wait beside the database: a server may be started. False: its files are being
  /// replaced, and starting a server on them would destroy data.
  bool database_is_whole = false;
  bool reverting = false;
};
/// nullopt: there is none. Errors: kCorruption, kIo.
Result<std::optional<UnfinishedRestore>> find_unfinished_restore(FileSystem& files,
                                                                 const Path& directory);

/// Generations whose restore kept files here, or that were not discarded as a whole.
Result<std::vector<std::string>> generations_with_kept_files(FileSystem& files,
                                                             const Path& directory);

/// Puts the files back, byte for byte, that were there before the restore of `generation`: those it
/// kept, or, where it was interrupted, those it moved away. All that was written to the database
/// since goes. Interrupted anywhere it is continued by calling it again; no server starts on a
/// mixture. What an interrupted restore has only copied is removed. False: nothing of that
/// generation is here, and nothing was done.
///
/// Errors: kRefused (a server has the directory open, the lock, another generation's unfinished
/// restore, the old files are being removed), kCorruption (they are not complete; nothing was
/// changed), kIo.
Result<bool> revert_restore(FileSystem& files, const RestoredDatabase& database,
                            const std::string& generation);

/// Removes the files that the restore of `generation` kept, beside a running server, too. Their
/// bytes; 0: there were none. Interrupted, it is continued by calling it again. Errors: kRefused
/// (they are being put back), kIo.
Result<std::uint64_t> discard_kept_files(FileSystem& files, const RestoredDatabase& database,
                                         const std::string& generation);

}  // namespace verger::backup
