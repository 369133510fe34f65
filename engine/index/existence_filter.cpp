#include "engine/index/existence_filter.h"

#include <algorithm>
#include <vector>

namespace verger::index {
namespace {

/// Lines are read and written in whole pages of 4 KiB, ...
constexpr std::uint64_t kPageLines = 64;
/// ... several at once, up to 1 MiB, where not more than 32 KiB between them are of no use.
constexpr std::uint64_t kGapLines = 8 * kPageLines;
constexpr std::uint64_t kMostLines = 256 * kPageLines;

/// First line of the file's page that has the bit. Line 0 of a file is its header.
std::uint64_t page_of(std::uint64_t bit) {
  return (locate_bloom_bit(bit).line + 1) / kPageLines * kPageLines;
}

}  // namespace

ExistenceFilter::ExistenceFilter(FileSystem& files, Path index_directory,
                                 std::uint64_t logical_bytes)
    : files_(files),
      directory_(index_directory / "stream-existence"),
      logical_bytes_(
          logical_bytes == 0 ? 0 : std::clamp(logical_bytes, kMinBloomBytes, kMaxBloomBytes)) {}

Path ExistenceFilter::data_path() const { return directory_ / "streamExistenceFilter.dat"; }
Path ExistenceFilter::checkpoint_path() const { return directory_ / "streamExistenceFilter.chk"; }

Result<void> ExistenceFilter::load() {
  checkpoint_ = kNoPosition;
  const auto content = read_file(files_, checkpoint_path());
  if (!content) {
    return content.error().code == Errc::kNotFound ? Result<void>() : content.error();
  }
  if (content->size() >= sizeof(std::int64_t)) {
    checkpoint_ = std::max(kNoPosition, LogPosition(load_le<std::int64_t>(content->data())));
  }
  return {};
}

Result<std::unique_ptr<BloomFilter>> ExistenceFilter::open_filter() const {
  auto filter = BloomFilter::open(files_, data_path());
  if (!filter && filter.error().code == Errc::kIo) {
    return filter.error();
  }
  return filter ? *std::move(filter) : nullptr;
}

Result<void> ExistenceFilter::add(std::vector<StreamHash> hashes, LogPosition checkpoint) {
  if (!enabled()) {
    return {};
  }
  VERGER_TRY(auto filter, open_filter());
  if (filter == nullptr && checkpoint_ != kNoPosition) {
    return {};
  }
  const auto bit_count = filter != nullptr ? filter->bit_count() : logical_bytes_ * 8;
  const bool create = filter == nullptr;
  filter.reset();
  VERGER_RETURN_IF_ERROR(files_.make_directories(directory_));
  VERGER_TRY(const auto file, files_.open(data_path(), OpenMode::kCreate));
  const auto header = encode_bloom_header({0, bit_count});
  if (create) {
    VERGER_RETURN_IF_ERROR(file->resize(0));
    VERGER_RETURN_IF_ERROR(file->resize(bloom_file_size(bit_count / 8)));
    VERGER_RETURN_IF_ERROR(file->write_at(0, header));
  }
  std::vector<std::uint64_t> bits;
  bits.reserve(hashes.size() * kBloomProbes);
  for (const auto hash : hashes) {
    const auto probes = bloom_bits(hash, bit_count);
    bits.insert(bits.end(), probes.begin(), probes.end());
  }
  std::ranges::sort(bits);
  const auto line_count = bloom_file_size(bit_count / 8) / kBloomLineSize;
  Bytes lines;
  for (auto bit = bits.begin(); bit != bits.end();) {
    const auto first = page_of(*bit);
    auto end = first;
    auto behind = bit;
    for (; behind != bits.end(); ++behind) {
      const auto page = page_of(*behind);
      if (page > end + kGapLines || page >= first + kMostLines) {
        break;
      }
      end = page + kPageLines;
    }
    end = std::min(end, line_count);
    lines.assign((end - first) * kBloomLineSize, std::byte{0});
    if (!create) {
      VERGER_RETURN_IF_ERROR(file->read_exact(first * kBloomLineSize, lines));
    } else if (first == 0) {
      std::ranges::copy(header, lines.begin());
    }
    while (bit != behind) {
      const auto line = locate_bloom_bit(*bit).line;
      const auto bytes =
          MutableBytes(lines).subspan((line + 1 - first) * kBloomLineSize, kBloomLineSize);
      const bool sound = check_bloom_line(bytes);
      for (; bit != behind && locate_bloom_bit(*bit).line == line; ++bit) {
        const auto at = locate_bloom_bit(*bit);
        bytes[at.byte] |= at.mask;
      }
      if (sound) {  // the checksum of a poisoned line is never written
        seal_bloom_line(bytes);
      }
    }
    VERGER_RETURN_IF_ERROR(file->write_at(first * kBloomLineSize, lines));
  }
  // The bits are on the disk before the checkpoint says so.
  VERGER_RETURN_IF_ERROR(file->sync());
  VERGER_RETURN_IF_ERROR(files_.sync_directory(directory_));
  return checkpoint > checkpoint_ ? write_checkpoint(checkpoint) : Result<void>();
}

Result<void> ExistenceFilter::lower(LogPosition position) {
  return checkpoint_ > position ? write_checkpoint(position) : Result<void>();
}

Result<void> ExistenceFilter::write_checkpoint(LogPosition position) {
  std::array<std::byte, sizeof(std::int64_t)> bytes;
  store_le(bytes.data(), position.value());
  // In place, as a server does: a new file says to a backup that the filter was made anew. So few
  // bytes are never written in part.
  const auto size = files_.file_size(checkpoint_path());
  if (size && *size == bytes.size()) {
    VERGER_TRY(const auto file, files_.open(checkpoint_path(), OpenMode::kReadWrite));
    VERGER_RETURN_IF_ERROR(file->write_at(0, bytes));
    VERGER_RETURN_IF_ERROR(file->sync());
  } else {
    VERGER_RETURN_IF_ERROR(write_file_durably(files_, checkpoint_path(), bytes));
  }
  checkpoint_ = position;
  return {};
}

}  // namespace verger::index
