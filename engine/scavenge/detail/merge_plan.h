#pragma once

#include <cstdint>
#include <vector>

#include "engine/scavenge/estimate.h"

namespace verger::scavenge::detail {

/// A chunk file as the merger would meet it.
struct PhysicalChunk {
  std::int32_t start = 0;
  std::int32_t end = 0;
  Volume records{};  ///< what is in it; `records.records` only matters where it would be merged
  std::uint64_t file_bytes = 0;
};

/// The merges of all passes over completed chunks in order: neighbours are grouped as long as their
/// bytes fit into `chunk_size`. A chunk merged twice appears in two of them. `chunks` holds the
/// files afterwards.
std::vector<MergeEstimate> plan_merges(std::vector<PhysicalChunk>& chunks,
                                       std::uint64_t chunk_size);

/// The chunks that any pass would merge, as indexes; needs bytes only.
std::vector<std::size_t> chunks_to_merge(const std::vector<PhysicalChunk>& chunks,
                                         std::uint64_t chunk_size);

}  // namespace verger::scavenge::detail
