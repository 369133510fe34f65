#include "engine/log/detail/posmap.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::log::detail {
namespace {

constexpr std::size_t kSampleDistance = 256;
constexpr std::size_t kEntriesPerRead = 64 * kSampleDistance;

}  // namespace

Posmap::Posmap(const File& file, const ChunkFooter& footer)
    : file_(&file),
      offset_(static_cast<std::uint64_t>(kChunkHeaderSize) +
              static_cast<std::uint64_t>(footer.physical_data_size)),
      entry_size_(footer.map_12_bytes ? 12 : 8),
      count_(static_cast<std::size_t>(footer.map_size) / entry_size_) {}

Result<Posmap> Posmap::load(const File& file, const ChunkFooter& footer) {
  Posmap map(file, footer);
  map.samples_.reserve((map.count_ + kSampleDistance - 1) / kSampleDistance);
  std::vector<PosmapEntry> entries;
  PosmapEntry previous{-1, -1};
  for (std::size_t first = 0; first < map.count_; first += entries.size()) {
    VERGER_RETURN_IF_ERROR(map.read(first, entries, std::min(kEntriesPerRead, map.count_ - first)));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const PosmapEntry& entry = entries[i];
      if (entry.actual <= previous.actual || entry.local <= previous.local ||
          entry.actual >= footer.physical_data_size || entry.local >= footer.logical_data_size) {
        return Error{
            Errc::kCorruption,
            fmt::format("{}: position map entry {} at offset {} (actual {}, local position {}) is "
                        "out of order or beyond the data",
                        file.path().string(), first + i,
                        map.offset_ + (first + i) * map.entry_size_, entry.actual, entry.local)};
      }
      if ((first + i) % kSampleDistance == 0) {
        map.samples_.push_back(entry.local);
      }
      previous = entry;
    }
  }
  return map;
}

Result<void> Posmap::read(std::size_t first, std::vector<PosmapEntry>& entries,
                          std::size_t count) const {
  Bytes bytes(count * entry_size_);
  VERGER_RETURN_IF_ERROR(file_->read_exact(offset_ + first * entry_size_, bytes));
  entries.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* at = bytes.data() + i * entry_size_;
    entries[i].actual = load_le<std::int32_t>(at);
    entries[i].local =
        entry_size_ == 12 ? load_le<std::int64_t>(at + 4) : load_le<std::int32_t>(at + 4);
  }
  return {};
}

Result<PosmapEntry> Posmap::entry(std::size_t index) const {
  std::vector<PosmapEntry> entries;
  VERGER_RETURN_IF_ERROR(read(index, entries, 1));
  return entries.front();
}

Result<Posmap::Found> Posmap::lower_bound(std::int64_t local) const {
  if (count_ == 0) {
    return Found{};
  }
  // The last sample that is not above; the answer is in its page or the first of the next one.
  const auto after = std::ranges::upper_bound(samples_, local);
  const auto page = static_cast<std::size_t>(after - samples_.begin());
  const std::size_t first = page == 0 ? 0 : (page - 1) * kSampleDistance;
  std::vector<PosmapEntry> entries;
  VERGER_RETURN_IF_ERROR(read(first, entries, std::min(kSampleDistance + 1, count_ - first)));
  const auto found = std::ranges::lower_bound(entries, local, {}, &PosmapEntry::local);
  if (found == entries.end()) {
    return Found{count_, std::nullopt};
  }
  return Found{first + static_cast<std::size_t>(found - entries.begin()), *found};
}

Result<std::vector<PosmapEntry>> Posmap::all() const {
  std::vector<PosmapEntry> entries;
  VERGER_RETURN_IF_ERROR(read(0, entries, count_));
  return entries;
}

}  // namespace verger::log::detail
