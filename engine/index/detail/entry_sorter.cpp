#include "engine/index/detail/entry_sorter.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace verger::index::detail {
namespace {

/// A bucket of so many entries is sorted in memory, also where a batch is smaller than that.
constexpr std::uint64_t kSmallBucket = 4096;
/// What a merge hands out at once, and what is written at once.
constexpr std::size_t kPieceEntries = 8192;
constexpr unsigned kMostBits = 13;
/// Fewer entries, or more, are compared with each other.
constexpr std::size_t kLeastToCount = 16;
constexpr std::size_t kMostToCount = 65'536;

/// Sorts entries by their numbers where these lie close together, as those of one stream do when
/// chunks were read side by side. What is equal keeps its order.
void sort_by_number(std::span<IndexEntry> entries, std::vector<std::uint32_t>& ends,
                    std::vector<IndexEntry>& copy) {
  const auto [least, most] = std::ranges::minmax(entries, {}, &IndexEntry::number);
  const auto range = static_cast<std::uint64_t>(most.number.value()) -
                     static_cast<std::uint64_t>(least.number.value());
  if (range >= 8 * entries.size()) {
    return;
  }
  const auto place = [&](const IndexEntry& entry) {  // descending
    return static_cast<std::size_t>(most.number.value() - entry.number.value());
  };
  ends.assign(static_cast<std::size_t>(range) + 2, 0);
  for (const auto& entry : entries) {
    ++ends[place(entry) + 1];
  }
  for (std::size_t i = 1; i < ends.size(); ++i) {
    ends[i] += ends[i - 1];
  }
  copy.assign(entries.begin(), entries.end());
  for (const auto& entry : copy) {
    entries[ends[place(entry)]++] = entry;
  }
}

}  // namespace

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

EntrySorter::Block* EntrySorter::new_block(Block* before) {
  if (blocks_used_ == blocks_.size()) {
    blocks_.push_back(std::make_unique_for_overwrite<Block>());
  }
  auto* block = blocks_[blocks_used_++].get();
  block->used = 0;
  block->before = before;
  return block;
}

void EntrySorter::take_held(std::size_t bucket, std::vector<IndexEntry>& out) const {
  for (const auto* block = held_[bucket]; block != nullptr; block = block->before) {
    const auto entries = std::span(block->entries).first(block->used);
    out.insert(out.end(), entries.rbegin(), entries.rend());
  }
}

std::uint64_t EntrySorter::held_of(std::size_t bucket) const {
  std::uint64_t count = 0;
  for (const auto* block = held_[bucket]; block != nullptr; block = block->before) {
    count += block->used;
  }
  return count;
}

/// Dealing leaves entries with the same bits in the order in which they are in `piece_`.
void EntrySorter::sort_piece() {
  const auto bits = std::min(static_cast<unsigned>(std::bit_width(piece_.size() / 4)), kMostBits);
  const auto most = (std::size_t{1} << bits) - 1;
  const auto part = [=](const IndexEntry& entry) {  // descending
    return most -
           (static_cast<std::size_t>(entry.hash.value() >> (64U - kBucketBits - bits)) & most);
  };
  ends_.assign(most + 2, 0);
  for (const auto& entry : piece_) {
    ++ends_[part(entry) + 1];
  }
  for (std::size_t i = 1; i < ends_.size(); ++i) {
    ends_[i] += ends_[i - 1];
  }
  sorted_.resize(piece_.size());
  for (const auto& entry : piece_) {
    sorted_[ends_[part(entry)]++] = entry;
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= most; ++i) {
    sort_part(std::span(sorted_).subspan(begin, ends_[i] - begin));
    begin = ends_[i];
  }
}

void EntrySorter::sort_part(std::span<IndexEntry> part) {
  if (std::ranges::is_sorted(part, std::greater{})) {
    return;
  }
  if (part.size() >= kLeastToCount && part.size() <= kMostToCount &&
      std::ranges::all_of(part, [&](const auto& entry) { return entry.hash == part[0].hash; })) {
    sort_by_number(part, number_ends_, copy_);
    if (std::ranges::is_sorted(part, std::greater{})) {
      return;
    }
  }
  std::ranges::sort(part, std::greater{});
}

Result<void> EntrySorter::write_run() {
  Run run{directory_ / (random_.uuid().to_string() + std::string(kRunSuffix)), nullptr, {}};
  VERGER_TRY(run.file, files_.open(run.path, OpenMode::kCreateNew));
  runs_.push_back(std::move(run));
  auto& [path, file, starts] = runs_.back();
  std::uint64_t written = 0;
  Bytes bytes;
  const auto flush = [&]() -> Result<void> {
    VERGER_RETURN_IF_ERROR(file->write_at(written * kEntrySize, bytes));
    written += bytes.size() / kEntrySize;
    bytes.clear();
    return {};
  };
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    piece_.clear();
    take_held(bucket, piece_);
    held_[bucket] = nullptr;
    sort_piece();
    starts[bucket + 1] = starts[bucket] + sorted_.size();
    for (std::size_t start = 0; start < sorted_.size(); start += kPieceEntries) {
      const auto count = std::min(kPieceEntries, sorted_.size() - start);
      const auto at = bytes.size();
      bytes.resize(at + count * kEntrySize);
      for (std::size_t i = 0; i < count; ++i) {
        encode_entry(bytes.data() + at + i * kEntrySize, sorted_[start + i]);
      }
      if (bytes.size() >= kPieceEntries * kEntrySize) {
        VERGER_RETURN_IF_ERROR(flush());
      }
    }
  }
  VERGER_RETURN_IF_ERROR(flush());
  sorted_.clear();
  held_count_ = 0;
  blocks_used_ = 0;
  return {};
}

Result<void> EntrySorter::load(std::size_t bucket) {
  auto count = held_of(bucket);
  for (const auto& run : runs_) {
    count += run.starts[bucket + 1] - run.starts[bucket];
  }
  piece_.clear();
  take_held(bucket, piece_);
  if (count <= std::max(batch_size_ / 8, kSmallBucket)) {
    // The latest first, as in a batch.
    for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
      const auto start = run->starts[bucket];
      VERGER_RETURN_IF_ERROR(read_entries(*run->file, start * kEntrySize, kNewestPTableVersion,
                                          run->starts[bucket + 1] - start, sorted_));
      piece_.insert(piece_.end(), sorted_.begin(), sorted_.end());
    }
    sort_piece();
    return {};
  }
  sort_piece();
  std::vector<Source> sources;
  sources.reserve(runs_.size() + 1);
  for (const auto& run : runs_) {
    sources.emplace_back(*run.file, run.starts[bucket],
                         run.starts[bucket + 1] - run.starts[bucket]);
  }
  sources.emplace_back(std::move(sorted_));
  merge_.emplace(std::move(sources));
  return merge_more();
}

Result<void> EntrySorter::merge_more() {
  sorted_.clear();
  while (sorted_.size() < kPieceEntries) {
    VERGER_TRY(const bool more, merge_->advance());
    if (!more) {
      merge_.reset();
      break;
    }
    sorted_.push_back(merge_->current());
  }
  return {};
}

Result<bool> EntrySorter::refill() {
  at_ = 0;
  sorted_.clear();
  while (sorted_.empty()) {
    if (merge_) {
      VERGER_RETURN_IF_ERROR(merge_more());
    } else if (next_bucket_ < kBuckets) {
      VERGER_RETURN_IF_ERROR(load(next_bucket_++));
    } else {
      return false;
    }
  }
  return true;
}

Result<std::span<const IndexEntry>> EntrySorter::next_piece() {
  if (at_ + 1 < sorted_.size()) {
    const auto rest = std::span<const IndexEntry>(sorted_).subspan(at_ + 1);
    at_ = sorted_.size();
    return rest;
  }
  VERGER_TRY(const bool more, refill());
  if (!more) {
    return std::span<const IndexEntry>();
  }
  at_ = sorted_.size();
  return std::span<const IndexEntry>(sorted_);
}

}  // namespace verger::index::detail
