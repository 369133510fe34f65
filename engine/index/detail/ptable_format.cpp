#include "engine/index/detail/ptable_format.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::index::detail {
namespace {

constexpr std::byte kPTableType{1};
constexpr int kMaxDepth = 28;
constexpr std::uint64_t kBytesPerMidpoint = 4096;
/// Bytes of header and footer that mean something; the rest is zero.
constexpr std::size_t kHeaderFields = 2;
constexpr std::size_t kFooterFields = 6;

/// Table of `size` bytes of entries: one more than the greatest depth that would leave more than
/// two pages to each midpoint.
int midpoint_depth(std::uint64_t size, int cache_depth) {
  for (int depth = kMaxDepth - 1; depth >= cache_depth; --depth) {
    if (2 * (std::uint64_t{1} << static_cast<unsigned>(depth)) * kBytesPerMidpoint < size) {
      return depth + 1;
    }
  }
  return cache_depth;
}

/// The rest of header and footer: a byte there that is not zero was never written so.
Result<void> check_zeros(ByteView bytes, std::size_t from, std::string_view where) {
  const auto rest = bytes.subspan(from);
  const auto found = std::ranges::find_if(rest, [](std::byte b) { return b != std::byte{0}; });
  if (found != rest.end()) {
    return Error{Errc::kCorruption,
                 fmt::format("PTable {}: byte {} is not zero", where,
                             from + static_cast<std::size_t>(found - rest.begin()))};
  }
  return {};
}

}  // namespace

std::uint64_t required_midpoints(std::uint64_t count, int cache_depth) {
  if (count == 0) {
    return 0;
  }
  const auto depth = midpoint_depth(count * kEntrySize, cache_depth);
  const auto wanted = std::uint64_t{1} << static_cast<unsigned>(depth);
  return std::max<std::uint64_t>(2, std::min(wanted, count));
}

std::uint64_t search_midpoints(const PTableLayout& layout, int cache_depth) {
  return layout.midpoint_count > 0 ? layout.midpoint_count
                                   : required_midpoints(layout.count, cache_depth);
}

std::uint64_t midpoint_entry(std::uint64_t k, std::uint64_t count, std::uint64_t midpoints) {
  // floor(k * (count - 1) / (midpoints - 1)) without a product beyond 64 bits.
  const auto span = count - 1;
  const auto steps = midpoints - 1;
  return span / steps * k + span % steps * k / steps;
}

bool is_newest_footer(ByteView footer) {
  return footer.size() >= kPTableFooterSize && footer[0] == kPTableType &&
         std::to_integer<int>(footer[1]) == kNewestPTableVersion &&
         check_zeros(footer.first(kPTableFooterSize), kFooterFields, "footer");
}

Result<int> decode_ptable_header(ByteView header) {
  if (header.size() < kPTableHeaderSize) {
    return Error{Errc::kCorruption, "PTable header: shorter than 128 bytes"};
  }
  if (header[0] != kPTableType) {
    return Error{Errc::kCorruption, fmt::format("PTable header at offset 0: file type {}, not 1",
                                                std::to_integer<int>(header[0]))};
  }
  const auto version = std::to_integer<int>(header[1]);
  if (version > kNewestPTableVersion) {
    return Error{Errc::kUnsupported,
                 fmt::format("PTable version {} at offset 1: newer than {}, written by a newer "
                             "server",
                             version, kNewestPTableVersion)};
  }
  if (version == 0) {
    return Error{Errc::kCorruption, "PTable header at offset 1: version 0"};
  }
  VERGER_RETURN_IF_ERROR(check_zeros(header.first(kPTableHeaderSize), kHeaderFields, "header"));
  return version;
}

Result<PTableLayout> decode_ptable_layout(int version, ByteView footer, std::uint64_t file_size) {
  PTableLayout layout{.version = version};
  std::uint64_t around = kPTableHeaderSize + kPTableMd5Size;
  if (version == kNewestPTableVersion) {
    if (footer.size() < kPTableFooterSize || footer[0] != kPTableType ||
        std::to_integer<int>(footer[1]) != version) {
      return Error{Errc::kCorruption, "PTable footer: type or version is not the header's"};
    }
    VERGER_RETURN_IF_ERROR(check_zeros(footer.first(kPTableFooterSize), kFooterFields, "footer"));
    layout.midpoint_count = load_le<std::uint32_t>(footer.data() + 2);
    around += kPTableFooterSize + layout.midpoint_count * kMidpointSize;
  }
  const auto bytes = entry_size(version);
  if (file_size < around || (file_size - around) % bytes != 0) {
    return Error{Errc::kCorruption,
                 fmt::format("PTable of {} bytes with {} midpoints: what is left for entries is "
                             "not a multiple of {}",
                             file_size, layout.midpoint_count, bytes)};
  }
  layout.count = (file_size - around) / bytes;
  if (layout.midpoint_count != 0 && (layout.midpoint_count < 2 || layout.count == 0 ||
                                     (layout.count >= 2 && layout.midpoint_count > layout.count))) {
    return Error{Errc::kCorruption, fmt::format("PTable with {} midpoints for {} entries",
                                                layout.midpoint_count, layout.count)};
  }
  return layout;
}

}  // namespace verger::index::detail
