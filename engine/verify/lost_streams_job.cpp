#include "engine/verify/lost_streams_job.h"

#include <fmt/format.h>

#include "engine/index/existence_filter.h"
#include "engine/index/index_map.h"

namespace verger::verify {
namespace {

constexpr int kMostListings = 20;
/// Tables of this version have the upper half of the hash alone.
constexpr int kHalfHashes = 1;
constexpr std::uint64_t kBytesOfEntry = 24;

Path filter_directory(const Path& index_directory) { return index_directory / "stream-existence"; }

}  // namespace

Result<StepOutcome> LostStreamsJob::step(Budget budget) {
  if (!is_open_) {
    VERGER_RETURN_IF_ERROR(open());
    is_open_ = true;
    return StepOutcome{};
  }
  for (std::uint32_t n = 0; n < budget.units; ++n) {
    if (!scanner_) {
      VERGER_TRY(const bool opened, open_next_table());
      if (!opened) {
        return StepOutcome{.kind = StepOutcome::Kind::kDone};
      }
    }
    VERGER_TRY(const auto* entry, scanner_->next());
    if (entry == nullptr) {
      scanner_.reset();
      continue;
    }
    ++done_;
    look_at(*entry);
    if (lost_.size() == kMostCounted) {
      scanner_.reset();
      return StepOutcome{.kind = StepOutcome::Kind::kDone};
    }
  }
  return StepOutcome{};
}

Result<void> LostStreamsJob::open() {
  VERGER_TRY(const bool usable, open_filter());
  return usable ? list_tables() : Result<void>();
}

Result<bool> LostStreamsJob::open_filter() {
  filter_.reset();
  // The checkpoint before the filter: what it covers is in any later filter.
  index::ExistenceFilter existence(files_, directory_, 0);
  VERGER_RETURN_IF_ERROR(existence.load());
  checkpoint_ = existence.checkpoint();
  if (checkpoint_ == kNoPosition) {
    return false;  // a server makes it anew
  }
  auto filter =
      index::BloomFilter::open(files_, filter_directory(directory_) / "streamExistenceFilter.dat");
  if (!filter) {
    return false;  // so it does with one that it cannot use
  }
  filter_ = *std::move(filter);
  return true;
}

Result<void> LostStreamsJob::list_tables() {
  VERGER_TRY(const auto map, index::load_index_map(files_, directory_));
  to_read_.clear();
  total_ = done_;
  for (const auto& line : map.tables) {
    if (read_.contains(line.file)) {
      continue;
    }
    to_read_.push_back(line.file);
    const auto size = files_.file_size(directory_ / line.file);
    total_ += size ? *size / kBytesOfEntry : 0;
  }
  // The youngest, which are merged first, are first in the map.
  std::ranges::reverse(to_read_);
  return {};
}

Result<bool> LostStreamsJob::open_next_table() {
  while (filter_ != nullptr && !to_read_.empty()) {
    const auto name = to_read_.back();
    auto table = index::PTable::open(files_, directory_ / name, /*cache_depth=*/0);
    if (!table && table.error().code == Errc::kNotFound) {
      // Merged away: its entries are in another by now.
      if (++listings_without_progress_ > kMostListings) {
        return Error{
            Errc::kUnavailable,
            fmt::format("{}: its tables change faster than they are opened", directory_.string())};
      }
      VERGER_RETURN_IF_ERROR(list_tables());
      continue;
    }
    VERGER_RETURN_IF_ERROR(table);
    listings_without_progress_ = 0;
    to_read_.pop_back();
    read_.insert(name);
    if ((*table)->version() > kHalfHashes) {
      scanner_.emplace(*std::move(table));
      last_seen_.reset();
      return true;
    }
  }
  return false;
}

void LostStreamsJob::look_at(const index::IndexEntry& entry) {
  // A tombstone alone may be missing: the server itself leaves it out.
  if (entry.position >= checkpoint_ || entry.number == kDeletedStream || entry.hash == last_seen_) {
    return;
  }
  last_seen_ = entry.hash;
  if (!filter_->may_contain(entry.hash) && lost_.insert(entry.hash).second &&
      listed_.size() < kListed) {
    listed_.push_back({entry.hash, entry.position});
  }
}

Result<void> LostStreamsJob::look_again() {
  VERGER_TRY(const bool usable, open_filter());
  const auto is_found = [this, usable](StreamHash hash) {
    return !usable || filter_->may_contain(hash);
  };
  std::erase_if(lost_, is_found);
  std::erase_if(listed_, [&is_found](const Lost& lost) { return is_found(lost.hash); });
  return {};
}

Result<bool> existence_filter_is_due(FileSystem& files, const Path& index_directory) {
  index::ExistenceFilter existence(files, index_directory, 0);
  VERGER_RETURN_IF_ERROR(existence.load());
  return existence.checkpoint() == kNoPosition;
}

Result<void> drop_existence_checkpoint(FileSystem& files, const Path& index_directory) {
  const auto directory = filter_directory(index_directory);
  const auto path = directory / "streamExistenceFilter.chk";
  if (auto removed = files.remove(path); !removed && removed.error().code != Errc::kNotFound) {
    return removed.error();
  }
  VERGER_TRY(const bool there, files.exists(directory));
  return there ? files.sync_directory(directory) : Result<void>();
}

}  // namespace verger::verify
