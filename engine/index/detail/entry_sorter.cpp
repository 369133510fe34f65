#include "engine/index/detail/entry_sorter.h"

#include <algorithm>
#include <functional>

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

void EntrySorter::sort_batch() { std::ranges::sort(batch_, std::greater{}); }

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
    VERGER_CHECK(runs_.back().file->write_at(start * kEntrySize, bytes));
  }
  batch_.clear();
  return {};
}

Result<bool> EntrySorter::advance() {
  if (!merge_) {
    sort_batch();
    std::vector<Source> sources;
    for (const auto& run : runs_) {
      sources.emplace_back(*run.file, run.count);
    }
    sources.emplace_back(batch_);
    merge_.emplace(std::move(sources));
  }
  return merge_->advance();
}

}  // namespace verger::index::detail
