#include <algorithm>
#include <fmt/format.h>

#include "engine/log/chunk.h"
#include "engine/log/detail/limits.h"

namespace verger::log {
namespace {

constexpr std::uint8_t kChunkFileType = 2;
constexpr std::uint8_t kNewestCompatibleVersion = 4;
constexpr std::uint8_t kTransformVersion = 4;
constexpr std::uint8_t kCompletedFlag = 1;
constexpr std::uint8_t kMap12BytesFlag = 2;
constexpr std::size_t kMd5Offset = 112;

std::optional<std::size_t> first_nonzero(ByteView bytes, std::size_t from, std::size_t to) {
  const auto part = bytes.subspan(from, to - from);
  const auto found = std::ranges::find_if(part, [](std::byte b) { return b != std::byte{0}; });
  if (found == part.end()) {
    return std::nullopt;
  }
  return from + static_cast<std::size_t>(found - part.begin());
}

}  // namespace

Result<ChunkHeader> decode_chunk_header(ByteView bytes) {
  if (bytes.size() < kChunkHeaderSize) {
    return Error{Errc::kCorruption,
                 fmt::format("chunk header: only {} of 128 bytes are there", bytes.size())};
  }
  const auto at = [&]<std::integral T>(std::size_t offset, T) {
    return load_le<T>(bytes.data() + offset);
  };
  if (const auto type = at(0, std::uint8_t{}); type != kChunkFileType) {
    return Error{
        Errc::kCorruption,
        fmt::format("chunk header: file type (offset 0) is {}, not that of a chunk", type)};
  }
  ChunkHeader header;
  header.min_compatible_version = at(1, std::uint8_t{});
  if (header.min_compatible_version > kNewestCompatibleVersion) {
    return Error{Errc::kUnsupported,
                 fmt::format("chunk header: needs chunk format {}, Verger knows up to {}; use a "
                             "newer Verger",
                             header.min_compatible_version, kNewestCompatibleVersion)};
  }
  header.chunk_size = at(2, std::int32_t{});
  header.start = ChunkNumber(at(6, std::int32_t{}));
  header.end = ChunkNumber(at(10, std::int32_t{}));
  header.scavenged = at(14, std::int32_t{}) > 0;
  std::ranges::copy(bytes.subspan(18, 16), header.chunk_id.bytes.begin());
  header.version = at(34, std::uint8_t{});
  header.transform_type = at(35, std::uint8_t{});
  if (header.effective_version() >= kTransformVersion && header.transform_type != 0) {
    return Error{Errc::kUnsupported,
                 fmt::format("chunk header: the data is transformed (type {}, for example "
                             "encrypted); Verger reads plain chunks only",
                             header.transform_type)};
  }
  if (header.min_compatible_version < 2 || header.effective_version() < 2) {
    return Error{Errc::kCorruption, fmt::format("chunk header: format version {} never existed",
                                                header.min_compatible_version)};
  }
  if (header.chunk_size <= 0 || header.start.value() < 0 || header.end < header.start ||
      header.end.value() >= detail::kMaxChunkCount) {
    return Error{Errc::kCorruption,
                 fmt::format("chunk header: chunk size {}, start {}, end {} is impossible",
                             header.chunk_size, header.start, header.end)};
  }
  const std::size_t reserved = header.effective_version() >= kTransformVersion ? 36 : 35;
  if (const auto dirty = first_nonzero(bytes, reserved, kChunkHeaderSize)) {
    return Error{Errc::kCorruption,
                 fmt::format("chunk header: reserved byte at offset {} is not zero", *dirty)};
  }
  return header;
}

std::array<std::byte, kChunkHeaderSize> encode_chunk_header(const ChunkHeader& header) {
  std::array<std::byte, kChunkHeaderSize> bytes{};
  store_le(bytes.data(), kChunkFileType);
  store_le(bytes.data() + 1, header.min_compatible_version);
  store_le(bytes.data() + 2, header.chunk_size);
  store_le(bytes.data() + 6, header.start.value());
  store_le(bytes.data() + 10, header.end.value());
  store_le(bytes.data() + 14, std::int32_t{header.scavenged ? 1 : 0});
  std::ranges::copy(header.chunk_id.bytes, bytes.begin() + 18);
  store_le(bytes.data() + 34, header.version);
  store_le(bytes.data() + 35, header.transform_type);
  return bytes;
}

Result<ChunkFooter> decode_chunk_footer(ByteView bytes) {
  if (bytes.size() < kChunkFooterSize) {
    return Error{Errc::kCorruption,
                 fmt::format("chunk footer: only {} of 128 bytes are there", bytes.size())};
  }
  ChunkFooter footer;
  const auto flags = load_le<std::uint8_t>(bytes.data());
  footer.completed = (flags & kCompletedFlag) != 0;
  footer.map_12_bytes = (flags & kMap12BytesFlag) != 0;
  footer.physical_data_size = load_le<std::int32_t>(bytes.data() + 1);
  // The flag decides the layout of what follows: older files have 32 bits for the logical size.
  if (footer.map_12_bytes) {
    footer.logical_data_size = load_le<std::int64_t>(bytes.data() + 5);
    footer.map_size = load_le<std::int32_t>(bytes.data() + 13);
  } else {
    footer.logical_data_size = load_le<std::int32_t>(bytes.data() + 5);
    footer.map_size = load_le<std::int32_t>(bytes.data() + 9);
  }
  std::ranges::copy(bytes.subspan(kMd5Offset, 16), footer.md5.begin());
  if (!footer.completed) {
    return footer;  // of an active chunk: nothing in it means anything
  }
  const int entry_size = footer.map_12_bytes ? 12 : 8;
  if (footer.physical_data_size < 0 || footer.logical_data_size < footer.physical_data_size ||
      footer.map_size < 0 || footer.map_size % entry_size != 0) {
    return Error{
        Errc::kCorruption,
        fmt::format("chunk footer: data size {}, logical size {}, position map of {} bytes with "
                    "entries of {} is impossible",
                    footer.physical_data_size, footer.logical_data_size, footer.map_size,
                    entry_size)};
  }
  return footer;
}

std::array<std::byte, kChunkFooterSize> encode_chunk_footer(const ChunkFooter& footer) {
  std::array<std::byte, kChunkFooterSize> bytes{};
  const unsigned flags =
      (footer.completed ? kCompletedFlag : 0U) | (footer.map_12_bytes ? kMap12BytesFlag : 0U);
  store_le(bytes.data(), static_cast<std::uint8_t>(flags));
  store_le(bytes.data() + 1, footer.physical_data_size);
  if (footer.map_12_bytes) {
    store_le(bytes.data() + 5, footer.logical_data_size);
    store_le(bytes.data() + 13, footer.map_size);
  } else {
    store_le(bytes.data() + 5, static_cast<std::int32_t>(footer.logical_data_size));
    store_le(bytes.data() + 9, footer.map_size);
  }
  std::ranges::copy(footer.md5, bytes.begin() + kMd5Offset);
  return bytes;
}

std::string chunk_file_name(ChunkNumber start, int version) {
  return fmt::format("chunk-{:06}.{:06}", start.value(), version);
}

std::optional<ChunkFileName> parse_chunk_file_name(std::string_view name) {
  constexpr std::string_view kPrefix = "chunk-";
  if (name.size() != 19 || !name.starts_with(kPrefix) || name[12] != '.') {
    return std::nullopt;
  }
  const auto number = [](std::string_view digits) -> std::optional<int> {
    int value = 0;
    for (const char digit : digits) {
      if (digit < '0' || digit > '9') {
        return std::nullopt;
      }
      value = value * 10 + (digit - '0');
    }
    return value;
  };
  const auto start = number(name.substr(6, 6));
  const auto version = number(name.substr(13, 6));
  if (!start || !version) {
    return std::nullopt;
  }
  return ChunkFileName{ChunkNumber(*start), *version};
}

}  // namespace verger::log
