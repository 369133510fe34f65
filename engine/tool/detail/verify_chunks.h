#pragma once

#include "engine/tool/detail/findings.h"

namespace verger::tool {

struct ChunkTotals {
  std::uint64_t files = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
};

/// Looks, with several threads, at every chunk file and checkpoint of `directory` on its own, so
/// that one damaged file does not hide the next: names, headers, footers, MD5, position maps,
/// framing, records. Error: the directory cannot be read at all.
Result<ChunkTotals> verify_chunks(ToolContext& tool, const Path& directory, std::int32_t chunk_size,
                                  int threads, Findings& findings);

}  // namespace verger::tool
