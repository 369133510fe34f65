#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/base/bytes.h"
#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/base/types.h"

namespace verger::index {

/// The container of filter bits that PTable filters and the stream existence filter share: 64-byte
/// lines, the first a header, each other one 60 bytes of bits and their checksum.
/// Format: docs/formats/index.md, "Filters".
inline constexpr std::size_t kBloomLineSize = 64;
inline constexpr std::size_t kBloomLineBytes = 60;
inline constexpr std::uint64_t kMinBloomBytes = 10'000;
inline constexpr std::uint64_t kMaxBloomBytes = 4'000'000'000;
inline constexpr std::size_t kBloomProbes = 6;

using BloomLine = std::array<std::byte, kBloomLineSize>;

/// Logical bytes of the filter of a PTable sized for that many entries.
std::uint64_t bloom_bytes_for(std::uint64_t entries);
/// Size of the file with that many logical bytes.
std::uint64_t bloom_file_size(std::uint64_t logical_bytes);
/// The bits a key sets, in probe order.
std::array<std::uint64_t, kBloomProbes> bloom_bits(StreamHash key, std::uint64_t bit_count);

struct BloomBit {
  std::uint64_t line = 0;  ///< 0 is the first after the header
  std::size_t byte = 0;
  std::byte mask{};
};
BloomBit locate_bloom_bit(std::uint64_t bit);

struct BloomHeader {
  std::int32_t rebuild_count = 0;
  std::uint64_t bit_count = 0;
};
BloomLine encode_bloom_header(const BloomHeader& header);
/// Checks version, size limits and `file_size`. Errors: kCorruption, kUnsupported.
Result<BloomHeader> decode_bloom_header(ByteView line, std::uint64_t file_size);

/// Checks one line as the server does at opening. A line with one bit too many (a torn write) is
/// accepted; a corrupt one is filled with ones, "might contain everything", and false is returned.
bool check_bloom_line(MutableBytes line);
/// Writes the checksum of a line whose bits were changed.
void seal_bloom_line(MutableBytes line);

/// Makes a filter in memory.
class BloomBuilder {
 public:
  explicit BloomBuilder(std::uint64_t logical_bytes);
  void add(StreamHash key);
  /// The bytes of the file. Call it once, at the end.
  Bytes finish();

 private:
  std::uint64_t bit_count_;
  Bytes image_;
};

/// Reads a filter file. A filter of ordinary size is read whole at its first use; a larger one line
/// by line. Safe from any thread.
class BloomFilter {
 public:
  /// Checks header and length. Errors: kNotFound, kCorruption, kUnsupported, kIo.
  static Result<std::unique_ptr<BloomFilter>> open(FileSystem& files, const Path& path);

  /// A miss is certain. Damaged lines, an unreadable file and a filter with more than 5 % damaged
  /// lines say "may contain".
  bool may_contain(StreamHash key) const;
  std::uint64_t bit_count() const { return header_.bit_count; }
  struct DamagedLines {
    std::uint64_t count = 0;
    std::uint64_t first_offset = 0;  ///< in the file; means nothing when there is none
  };
  /// Looks at the whole file. Errors: kIo.
  Result<DamagedLines> damaged_lines() const;

 private:
  BloomFilter(std::unique_ptr<File> file, BloomHeader header, std::uint64_t size);
  void load() const;
  bool bit_is_set(std::uint64_t bit) const;

  std::unique_ptr<File> file_;
  BloomHeader header_;
  std::uint64_t size_;
  mutable std::once_flag loaded_;
  mutable Bytes image_;           // empty: read line by line
  mutable bool useless_ = false;  // unreadable or too damaged
};

}  // namespace verger::index
