#include "engine/index/sorted_entries.h"

#include "engine/index/detail/entry_sorter.h"

namespace verger::index {

struct SortedEntries::State {
  detail::EntrySorter sorter;
};

SortedEntries::SortedEntries(FileSystem& files, Path directory, Random& random, std::uint64_t batch)
    : state_(new State{detail::EntrySorter(files, std::move(directory), random, batch)}) {}
SortedEntries::SortedEntries(SortedEntries&&) noexcept = default;
SortedEntries& SortedEntries::operator=(SortedEntries&&) noexcept = default;
SortedEntries::~SortedEntries() = default;

Result<void> SortedEntries::add(const IndexEntry& entry) { return state_->sorter.add(entry); }
std::uint64_t SortedEntries::count() const { return state_->sorter.count(); }
Result<bool> SortedEntries::advance() { return state_->sorter.advance(); }
const IndexEntry& SortedEntries::current() const { return state_->sorter.current(); }
std::span<const IndexEntry> SortedEntries::held() const { return state_->sorter.held(); }
void SortedEntries::skip(std::size_t count) { state_->sorter.skip(count); }

}  // namespace verger::index
