#include "engine/index/detail/entry_sorter.h"

#include <algorithm>
#include <functional>

#include "engine/base/memory_file_system.h"

namespace verger::index::detail {
namespace {

class EntrySorterTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(EntrySorterTest, GivesEveryEntryBackInOrder) {
  MemoryFileSystem files;
  SeededRandom random(9);
  std::vector<IndexEntry> entries(50'000);
  for (auto& entry : entries) {
    // A third of them share one hash.
    entry = {StreamHash(random.below(3) == 0 ? 42 : random.next()),
             EventNumber(static_cast<std::int64_t>(random.below(10))),
             LogPosition(static_cast<std::int64_t>(random.below(1000)))};
  }
  {
    EntrySorter sorter(files, "/", random, GetParam());
    for (const auto& entry : entries) {
      ASSERT_TRUE(sorter.add(entry));
    }
    EXPECT_EQ(sorter.count(), entries.size());
    std::vector<IndexEntry> sorted;
    while (sorter.advance().value()) {
      sorted.push_back(sorter.current());
      // Now and then several at once.
      const auto held = sorter.held();
      const auto some = held.first(std::min<std::size_t>(held.size(), random.below(5)));
      sorted.insert(sorted.end(), some.begin(), some.end());
      sorter.skip(some.size());
      EXPECT_EQ(sorter.current(), sorted.back());
    }
    std::ranges::sort(entries, std::greater{});
    EXPECT_EQ(sorted, entries);
    EXPECT_FALSE(sorter.advance().value());
  }
  EXPECT_TRUE(files.list("/")->empty());
}

TEST_P(EntrySorterTest, GivesPiecesOfTheSameOrder) {
  MemoryFileSystem files;
  SeededRandom random(11);
  std::vector<IndexEntry> entries;
  for (std::int64_t n = 0; n < 50'000; ++n) {
    // Streams as a log has them: their numbers ascend.
    entries.push_back({StreamHash((random.below(200) + 1) * 0x9E3779B97F4A7C15U),
                       EventNumber(n / 100), LogPosition(n)});
  }
  // A tombstone, and the order of chunks that were read side by side.
  entries[25'000].number = kDeletedStream;
  for (std::size_t n = 10'000; n < 20'000; n += 2) {
    std::swap(entries[n], entries[n + 20'000]);
  }
  EntrySorter sorter(files, "/", random, GetParam());
  for (const auto& entry : entries) {
    ASSERT_TRUE(sorter.add(entry));
  }
  std::vector<IndexEntry> sorted;
  while (true) {
    const auto piece = sorter.next_piece().value();
    if (piece.empty()) {
      break;
    }
    sorted.insert(sorted.end(), piece.begin(), piece.end());
    if (sorter.advance().value()) {
      sorted.push_back(sorter.current());
    }
  }
  std::ranges::sort(entries, std::greater{});
  EXPECT_EQ(sorted, entries);
}

INSTANTIATE_TEST_SUITE_P(Batches, EntrySorterTest, testing::Values(700, 20'000, 50'000, 100'000));

}  // namespace
}  // namespace verger::index::detail
