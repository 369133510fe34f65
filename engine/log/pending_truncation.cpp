#include "engine/log/pending_truncation.h"

#include "engine/log/detail/checkpoint_files.h"
#include "engine/log/detail/server_search.h"

namespace verger::log {

using detail::Checkpoint;
using detail::CheckpointFiles;

Result<LogPosition> pending_truncation(FileSystem& files, const Path& directory) {
  VERGER_TRY(const auto checkpoints, CheckpointFiles::load(files, directory));
  return LogPosition(checkpoints.value(Checkpoint::kTruncate));
}

Result<void> note_truncation(FileSystem& files, const Path& directory, LogPosition position) {
  VERGER_TRY(auto checkpoints, CheckpointFiles::load(files, directory));
  return checkpoints.store(Checkpoint::kTruncate, position.value());
}

Result<std::optional<std::int64_t>> process_that_writes(const Path& directory) {
  VERGER_TRY(const auto found, detail::find_writing_process(directory));
  return found ? std::optional(found->id) : std::nullopt;
}

}  // namespace verger::log
