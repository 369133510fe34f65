#pragma once

#include <cstddef>
#include <cstdint>

namespace verger::log::detail {

/// Logical chunks a database may have: numbers 0 to 399,999.
inline constexpr std::int32_t kMaxChunkCount = 400'000;
/// Files of completed chunks, and preallocated ones, have a multiple of this many bytes.
inline constexpr std::uint64_t kChunkAlignment = 4096;
/// Unit of sequential reading, writing and hashing.
inline constexpr std::size_t kBufferSize = std::size_t{1} << 20U;

/// An entry of the position map of a scavenged chunk, as it is written: actual and log position.
inline constexpr std::size_t kPosmapEntrySize = sizeof(std::int32_t) + sizeof(std::int64_t);

constexpr std::uint64_t align_chunk_file(std::uint64_t size) {
  return (size + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment;
}

}  // namespace verger::log::detail
