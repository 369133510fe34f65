#pragma once

#include <functional>
#include <set>

#include "engine/online/native_run.h"
#include "tests/support/scavenge/run.h"

namespace verger::test {

struct OnlineRun {
  streams::ScavengePoint point;
  int threads = 1;
  index::HashFunction hash = &index::hash_stream;
  /// Asked before each switch; false: this chunk is left to the server.
  std::function<bool(const online_scavenge::PreparedChunk&)> switches{};
};

struct OnlineResult {
  online_scavenge::Preparation preparation{};
  std::set<std::int32_t> left{};  ///< first numbers of the chunks that were not switched
  bool resumed = false;           ///< from what an interrupted run had left
};

/// All up to the server's own phases, which the caller runs as a resumed scavenge; the shadow is
/// there afterwards. `live` is open for writing, as a server has it.
Result<OnlineResult> run_online(FileSystem& files, const Path& directory, streams::Database& live,
                                const OnlineRun& run);

}  // namespace verger::test
