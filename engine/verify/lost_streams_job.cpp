#include "engine/verify/lost_streams_job.h"

#include <fmt/format.h>

#include "engine/index/existence_filter.h"
#include "engine/index/index_map.h"

namespace verger::verify {
namespace {

constexpr int kTriesToOpen = 20;
/// Tables of this version have the upper half of the hash alone.
constexpr int kHalfHashes = 1;

Path filter_directory(const Path& index_directory) { return index_directory / "stream-existence"; }

/// nullopt: one of them was merged away meanwhile.
Result<std::optional<std::vector<std::shared_ptr<const index::PTable>>>> open_tables(
    FileSystem& files, const Path& directory) {
  VERGER_TRY(const auto map, index::load_index_map(files, directory));
  std::vector<std::shared_ptr<const index::PTable>> out;
  for (const auto& line : map.tables) {
    auto table = index::PTable::open(files, directory / line.file, /*cache_depth=*/0);
    if (!table && table.error().code == Errc::kNotFound) {
      return std::nullopt;
    }
    VERGER_RETURN_IF_ERROR(table);
    out.push_back(*std::move(table));
  }
  return out;
}

}  // namespace

Result<StepOutcome> LostStreamsJob::step(Budget budget) {
  if (!is_open_) {
    VERGER_RETURN_IF_ERROR(open());
    is_open_ = true;
    return StepOutcome{};
  }
  for (std::uint32_t n = 0; n < budget.units; ++n) {
    if (!scanner_) {
      if (filter_ == nullptr || next_table_ == tables_.size()) {
        return StepOutcome{.kind = StepOutcome::Kind::kDone};
      }
      scanner_.emplace(tables_[next_table_++]);
      last_seen_.reset();
    }
    VERGER_TRY(const auto* entry, scanner_->next());
    if (entry == nullptr) {
      scanner_.reset();
      continue;
    }
    ++done_;
    VERGER_RETURN_IF_ERROR(look_at(*entry));
  }
  return StepOutcome{};
}

Result<void> LostStreamsJob::open() {
  // The checkpoint before the filter: what it covers is in any later filter.
  index::ExistenceFilter existence(files_, directory_, 0);
  VERGER_RETURN_IF_ERROR(existence.load());
  checkpoint_ = existence.checkpoint();
  if (checkpoint_ == kNoPosition) {
    return {};  // a server makes it anew
  }
  auto filter =
      index::BloomFilter::open(files_, filter_directory(directory_) / "streamExistenceFilter.dat");
  if (!filter) {
    return {};  // so it does with one that it cannot use
  }
  filter_ = *std::move(filter);
  for (int attempt = 0; attempt < kTriesToOpen; ++attempt) {
    VERGER_TRY(auto tables, open_tables(files_, directory_));
    if (!tables) {
      continue;
    }
    for (auto& table : *tables) {
      if (table->version() > kHalfHashes) {
        total_ += table->count();
        tables_.push_back(std::move(table));
      }
    }
    return {};
  }
  return Error{Errc::kUnavailable, fmt::format("{}: its tables change faster than they are opened",
                                               directory_.string())};
}

Result<void> LostStreamsJob::look_at(const index::IndexEntry& entry) {
  // A tombstone alone may be missing: the server itself leaves it out.
  if (entry.position >= checkpoint_ || entry.number == kDeletedStream || entry.hash == last_seen_) {
    return {};
  }
  last_seen_ = entry.hash;
  if (!filter_->may_contain(entry.hash) && lost_.insert(entry.hash).second &&
      listed_.size() < kListed) {
    listed_.push_back({entry.hash, entry.position});
  }
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
