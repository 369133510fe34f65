#include "engine/log/writer_position.h"

#include "engine/log/detail/checkpoint_files.h"

namespace verger::log {

using detail::Checkpoint;
using detail::CheckpointFiles;

Result<LogPosition> writer_position(FileSystem& files, const Path& directory) {
  VERGER_TRY(const auto checkpoints, CheckpointFiles::load(files, directory));
  return LogPosition(checkpoints.value(Checkpoint::kWriter));
}

}  // namespace verger::log
