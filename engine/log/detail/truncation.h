#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/log/detail/opening.h"

namespace verger::log::detail {

/// What cutting the log to a position means for its files (docs/formats/log.md, "Truncation").
struct TruncationPlan {
  LogPosition target;               ///< the start of a scavenged chunk that has to go whole
  std::vector<std::string> remove;  ///< in this order: from the highest down
  std::optional<std::string> cut;   ///< the chunk file that stays in part
  std::int64_t keep = 0;            ///< bytes of records that stay in it
  std::uint64_t cut_size = 0;       ///< its length afterwards
  ChunkNumber first_removed;
  LogPosition epoch;  ///< checkpoints afterwards
  LogPosition chaser;
  LogPosition writer;
};

/// Checks everything the truncation relies on; changes nothing. The position need not be the one in
/// truncate.chk.
/// Errors: kRefused (more than max_truncation), kNotFound, kCorruption, kIo.
Result<TruncationPlan> plan_truncation(FileSystem& files, const Path& directory,
                                       const Snapshot& snapshot, const LogOptions& options,
                                       LogPosition position);

/// May be repeated from the start after a crash anywhere in it.
Result<void> carry_out(FileSystem& files, const Path& directory, CheckpointFiles& checkpoints,
                       const TruncationPlan& plan);

}  // namespace verger::log::detail
