#pragma once

#include <cstdint>
#include <limits>

#include "engine/base/bytes.h"
#include "engine/base/result.h"
#include "engine/index/entry.h"

namespace verger::index::detail {

/// Byte layout of PTables, versions 1 to 4 (docs/formats/index.md, "PTables").
inline constexpr std::size_t kPTableHeaderSize = 128;
inline constexpr std::size_t kPTableFooterSize = 128;
inline constexpr std::size_t kPTableMd5Size = 16;
inline constexpr std::size_t kMidpointSize = 24;
inline constexpr std::size_t kEntrySize = 24;  ///< versions 3 and 4
inline constexpr int kNewestPTableVersion = 4;

inline constexpr EventNumber kSmallestNumber{std::numeric_limits<std::int64_t>::min()};
inline constexpr EventNumber kGreatestNumber{std::numeric_limits<std::int64_t>::max()};
inline constexpr LogPosition kSmallestPosition{std::numeric_limits<std::int64_t>::min()};
inline constexpr LogPosition kGreatestPosition{std::numeric_limits<std::int64_t>::max()};

constexpr std::size_t entry_size(int version) {
  return version == 1 ? 16 : version == 2 ? 20 : kEntrySize;
}

/// A version-1 entry has 32 bits of hash, which stay where they are: in the low half.
inline IndexEntry decode_entry(const std::byte* bytes, int version) {
  switch (version) {
    case 1:
      return {StreamHash(load_le<std::uint32_t>(bytes + 4)),
              EventNumber(load_le<std::int32_t>(bytes)),
              LogPosition(load_le<std::int64_t>(bytes + 8))};
    case 2:
      return {StreamHash(load_le<std::uint64_t>(bytes + 4)),
              EventNumber(load_le<std::int32_t>(bytes)),
              LogPosition(load_le<std::int64_t>(bytes + 12))};
    default:
      return {StreamHash(load_le<std::uint64_t>(bytes + 8)),
              EventNumber(load_le<std::int64_t>(bytes)),
              LogPosition(load_le<std::int64_t>(bytes + 16))};
  }
}

/// Version 4.
inline void encode_entry(std::byte* bytes, const IndexEntry& entry) {
  store_le(bytes, entry.number.value());
  store_le(bytes + 8, entry.hash.value());
  store_le(bytes + 16, entry.position.value());
}

struct PTableLayout {
  int version = kNewestPTableVersion;
  std::uint64_t count = 0;
  std::uint64_t midpoint_count = 0;

  [[nodiscard]] std::uint64_t entry_offset(std::uint64_t n) const {
    return kPTableHeaderSize + n * entry_size(version);
  }
  [[nodiscard]] std::uint64_t midpoint_offset(std::uint64_t k) const {
    return entry_offset(count) + k * kMidpointSize;
  }
};

/// Number of midpoints a version-4 table of `count` entries has at this cache depth.
std::uint64_t required_midpoints(std::uint64_t count, int cache_depth);
/// How many midpoints a server with this cache depth has of a table in memory.
std::uint64_t search_midpoints(const PTableLayout& layout, int cache_depth);
/// The entry that midpoint `k` of `midpoints` copies; count >= 1, midpoints >= 2.
std::uint64_t midpoint_entry(std::uint64_t k, std::uint64_t count, std::uint64_t midpoints);

/// Is it the footer of a table of version 4? Then a header of a newer version is a damaged one.
bool is_newest_footer(ByteView footer);
/// The type and version of a header; the checks of the whole file. `footer` only for version 4.
/// Errors: kCorruption, kUnsupported.
Result<int> decode_ptable_header(ByteView header);
Result<PTableLayout> decode_ptable_layout(int version, ByteView footer, std::uint64_t file_size);

}  // namespace verger::index::detail
