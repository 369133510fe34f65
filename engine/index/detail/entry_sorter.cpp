#include "engine/index/detail/entry_sorter.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace verger::index::detail {

EntrySorter::EntrySorter(FileSystem& files, Path directory, Random& random, std::uint64_t batch)
    : files_(files),
      directory_(std::move(directory)),
      random_(random),
      batch_size_(std::max<std::uint64_t>(batch, 1)) {}

EntrySorter::~EntrySorter() {
  for (auto& run : runs_) {
    run.file.reset();
    static_cast<void>(files_.remove(run.path));
  }
}

/// Hashes are spread evenly: dealt out by their upper bits first, what is left to sort is short.
void EntrySorter::sort_batch() {
  constexpr unsigned kBits = 12;
  constexpr std::size_t kBuckets = std::size_t{1} << kBits;
  if (batch_.size() < kBuckets * 4) {
    std::ranges::sort(batch_, std::greater{});
    return;
  }
  const auto bucket = [](const IndexEntry& entry) {  // descending
    return kBuckets - 1 - static_cast<std::size_t>(entry.hash.value() >> (64U - kBits));
  };
  std::vector<std::size_t> ends(kBuckets + 1);
  for (const auto& entry : batch_) {
    ++ends[bucket(entry) + 1];
  }
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  auto next = ends;
  std::vector<IndexEntry> dealt(batch_.size());
  for (const auto& entry : batch_) {
    dealt[next[bucket(entry)]++] = entry;
  }
  batch_.swap(dealt);
  for (std::size_t i = 0; i < kBuckets; ++i) {
    std::sort(batch_.begin() + static_cast<std::ptrdiff_t>(ends[i]),
              batch_.begin() + static_cast<std::ptrdiff_t>(ends[i + 1]), std::greater{});
  }
}

Result<void> EntrySorter::write_run() {
  sort_batch();
  Run run{directory_ / (random_.uuid().to_string() + std::string(kRunSuffix)), nullptr,
          batch_.size()};
  VERGER_TRY(run.file, files_.open(run.path, OpenMode::kCreateNew));
  constexpr std::size_t kBlock = 16384;
  Bytes bytes;
  runs_.push_back(std::move(run));
  for (std::size_t start = 0; start < batch_.size(); start += kBlock) {
    const auto count = std::min(kBlock, batch_.size() - start);
    bytes.resize(count * kEntrySize);
    for (std::size_t i = 0; i < count; ++i) {
      encode_entry(bytes.data() + i * kEntrySize, batch_[start + i]);
    }
    VERGER_RETURN_IF_ERROR(runs_.back().file->write_at(start * kEntrySize, bytes));
  }
  batch_.clear();
  return {};
}

Result<bool> EntrySorter::advance() {
  if (!merge_) {
    sort_batch();
    std::vector<Source> sources;
    sources.reserve(runs_.size() + 1);
    for (const auto& run : runs_) {
      sources.emplace_back(*run.file, run.count);
    }
    sources.emplace_back(batch_);
    merge_.emplace(std::move(sources));
  }
  return merge_->advance();
}

}  // namespace verger::index::detail
