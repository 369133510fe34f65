#include "engine/index/bloom_filter.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/index/stream_hash.h"

namespace verger::index {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint32_t kLineSeed = 0xC58F1A7BU;
constexpr std::uint32_t kFirstSeed = 0xC0015EEDU;
constexpr std::uint32_t kSecondSeed = 0x13375EEDU;
constexpr std::uint64_t kMaxInMemory = 64U << 20U;

std::uint32_t line_hash(ByteView line) { return xx_draft(line.first(kBloomLineBytes), kLineSeed); }

std::uint64_t key_hash(ByteView key, std::uint32_t seed) {
  return (std::uint64_t{xx_draft(key, seed)} << 32U) | murmur3(key, seed);
}

bool all_equal(ByteView bytes, std::byte value) {
  return std::ranges::all_of(bytes, [value](std::byte b) { return b == value; });
}

/// More than 5 % damaged lines make a filter useless.
bool too_damaged(std::uint64_t corrupt, std::uint64_t lines) { return corrupt * 20 > lines; }

}  // namespace

std::uint64_t bloom_bytes_for(std::uint64_t entries) {
  return std::clamp(entries / 4, kMinBloomBytes, kMaxBloomBytes);
}

std::uint64_t bloom_file_size(std::uint64_t logical_bytes) {
  const auto offset = logical_bytes + logical_bytes / kBloomLineBytes * 4 + kBloomLineSize;
  return offset / kBloomLineSize * kBloomLineSize + kBloomLineSize;
}

std::array<std::uint64_t, kBloomProbes> bloom_bits(StreamHash key, std::uint64_t bit_count) {
  std::array<std::byte, 8> bytes;
  store_le(bytes.data(), key.value());
  const auto h1 = key_hash(bytes, kFirstSeed);
  const auto h2 = key_hash(bytes, kSecondSeed);
  std::array<std::uint64_t, kBloomProbes> bits{};
  for (std::uint64_t i = 0; i < kBloomProbes; ++i) {
    bits[i] = ((h1 + (i + 1) * h2) & 0x7FFF'FFFF'FFFF'FFFFU) % bit_count;
  }
  return bits;
}

BloomBit locate_bloom_bit(std::uint64_t bit) {
  const auto byte = bit / 8;
  return {byte / kBloomLineBytes, static_cast<std::size_t>(byte % kBloomLineBytes),
          std::byte(std::uint8_t(0x80U >> (bit % 8)))};
}

BloomLine encode_bloom_header(const BloomHeader& header) {
  BloomLine line{};
  line[0] = std::byte{kVersion};
  store_le(line.data() + 4, header.rebuild_count);
  store_le(line.data() + 8, static_cast<std::int64_t>(header.bit_count));
  return line;
}

Result<BloomHeader> decode_bloom_header(ByteView line, std::uint64_t file_size) {
  if (line.size() < kBloomLineSize) {
    return Error{Errc::kCorruption, "filter header: shorter than 64 bytes"};
  }
  if (line[0] != std::byte{kVersion}) {
    return Error{Errc::kUnsupported, fmt::format("filter header: version {}, expected {}",
                                                 std::to_integer<int>(line[0]), int{kVersion})};
  }
  BloomHeader header;
  header.rebuild_count = load_le<std::int32_t>(line.data() + 4);
  const auto bits = load_le<std::int64_t>(line.data() + 8);
  if (bits <= 0 || bits % 8 != 0 || static_cast<std::uint64_t>(bits) / 8 < kMinBloomBytes ||
      static_cast<std::uint64_t>(bits) / 8 > kMaxBloomBytes) {
    return Error{Errc::kCorruption, fmt::format("filter header: impossible size of {} bits", bits)};
  }
  header.bit_count = static_cast<std::uint64_t>(bits);
  if (const auto expected = bloom_file_size(header.bit_count / 8); expected != file_size) {
    return Error{Errc::kCorruption,
                 fmt::format("filter of {} bytes, its header promises {}", file_size, expected)};
  }
  return header;
}

bool check_bloom_line(MutableBytes line) {
  if (all_equal(line, std::byte{0xFF})) {
    return false;
  }
  if (all_equal(line, std::byte{0})) {
    return true;
  }
  const auto stored = load_le<std::uint32_t>(line.data() + kBloomLineBytes);
  if (line_hash(line) == stored) {
    return true;
  }
  for (std::size_t byte = 0; byte < kBloomLineBytes; ++byte) {
    const auto original = line[byte];
    for (std::uint8_t mask = 0x80; mask != 0; mask >>= 1U) {
      if ((original & std::byte{mask}) == std::byte{0}) {
        continue;
      }
      line[byte] = original & ~std::byte{mask};
      const bool matches = line_hash(line) == stored;
      line[byte] = original;
      if (matches) {
        seal_bloom_line(line);
        return true;
      }
    }
  }
  std::ranges::fill(line, std::byte{0xFF});
  return false;
}

void seal_bloom_line(MutableBytes line) {
  store_le(line.data() + kBloomLineBytes, line_hash(line));
}

BloomBuilder::BloomBuilder(std::uint64_t logical_bytes)
    : bit_count_(8 * std::clamp(logical_bytes, kMinBloomBytes, kMaxBloomBytes)),
      image_(bloom_file_size(bit_count_ / 8)) {}

void BloomBuilder::add(StreamHash key) {
  for (const auto bit : bloom_bits(key, bit_count_)) {
    const auto at = locate_bloom_bit(bit);
    image_[(at.line + 1) * kBloomLineSize + at.byte] |= at.mask;
  }
}

Bytes BloomBuilder::finish() {
  const auto header = encode_bloom_header({0, bit_count_});
  std::ranges::copy(header, image_.begin());
  for (auto at = kBloomLineSize; at < image_.size(); at += kBloomLineSize) {
    const auto line = MutableBytes(image_).subspan(at, kBloomLineSize);
    if (!all_equal(line, std::byte{0})) {  // lines never touched keep a checksum of zero
      seal_bloom_line(line);
    }
  }
  return std::move(image_);
}

Result<std::unique_ptr<BloomFilter>> BloomFilter::open(FileSystem& files, const Path& path) {
  VERGER_TRY(auto file, files.open(path, OpenMode::kRead));
  VERGER_TRY(const auto size, file->size());
  BloomLine line{};
  VERGER_RETURN_IF_ERROR(file->read_exact(0, line));
  auto header = decode_bloom_header(line, size);
  if (!header) {
    return header.error().within(path.string());
  }
  return std::unique_ptr<BloomFilter>(new BloomFilter(std::move(file), *header, size));
}

BloomFilter::BloomFilter(std::unique_ptr<File> file, BloomHeader header, std::uint64_t size)
    : file_(std::move(file)), header_(header), size_(size) {}

void BloomFilter::load() const {
  if (size_ > kMaxInMemory) {
    return;
  }
  Bytes image(size_);
  if (!file_->read_exact(0, image)) {
    useless_ = true;
    return;
  }
  std::uint64_t corrupt = 0;
  for (auto at = kBloomLineSize; at < image.size(); at += kBloomLineSize) {
    corrupt += check_bloom_line(MutableBytes(image).subspan(at, kBloomLineSize)) ? 0U : 1U;
  }
  useless_ = too_damaged(corrupt, size_ / kBloomLineSize);
  if (!useless_) {
    image_ = std::move(image);
  }
}

bool BloomFilter::bit_is_set(std::uint64_t bit) const {
  const auto at = locate_bloom_bit(bit);
  const auto offset = (at.line + 1) * kBloomLineSize;
  if (!image_.empty()) {
    return (image_[offset + at.byte] & at.mask) != std::byte{0};
  }
  BloomLine line{};
  if (!file_->read_exact(offset, line)) {
    return true;
  }
  check_bloom_line(line);
  return (line[at.byte] & at.mask) != std::byte{0};
}

bool BloomFilter::may_contain(StreamHash key) const {
  std::call_once(loaded_, [this] { load(); });
  return useless_ || std::ranges::all_of(bloom_bits(key, header_.bit_count),
                                         [this](std::uint64_t bit) { return bit_is_set(bit); });
}

Result<BloomFilter::DamagedLines> BloomFilter::damaged_lines() const {
  Bytes block(kBloomLineSize * 1024);
  DamagedLines damaged;
  for (std::uint64_t at = kBloomLineSize; at < size_;) {
    const auto length = std::min<std::uint64_t>(block.size(), size_ - at);
    const auto lines = MutableBytes(block).first(length);
    VERGER_RETURN_IF_ERROR(file_->read_exact(at, lines));
    for (std::size_t line = 0; line < length; line += kBloomLineSize) {
      if (!check_bloom_line(lines.subspan(line, kBloomLineSize)) && damaged.count++ == 0) {
        damaged.first_offset = at + line;
      }
    }
    at += length;
  }
  return damaged;
}

}  // namespace verger::index
