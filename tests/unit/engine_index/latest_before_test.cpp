// The last entry before a position, where positions do not ascend with the numbers: the answer is
// that of the server's search, entry for entry.
#include "engine/index/detail/latest_before.h"

#include <set>

#include "engine/index/detail/memtable.h"
#include "engine/index/detail/ptable_format.h"
#include "tests/unit/engine_index/index_fixture.h"

namespace verger::index {
namespace {

class LatestBeforeTest : public IndexTest {
 protected:
  std::shared_ptr<const PTable> table_of(const Entries& entries, int depth = 8) {
    auto writer = value(PTableWriter::create(disk_, "/db", random_.uuid(), entries.size(), depth));
    for (const auto& entry : entries) {
      value(writer.append(entry));
    }
    return value(PTable::open(disk_, value(writer.finish()), depth));
  }
};

/// The server's search in a table as it is written down, with every midpoint looked at in turn.
std::optional<IndexEntry> plain_search(const std::vector<IndexEntry>& entries,
                                       std::uint64_t midpoints, StreamHash hash, LogPosition limit,
                                       const EntryFilter& filter) {
  const auto key = [&](std::int64_t i) { return entries[static_cast<std::size_t>(i)]; };
  std::int64_t low = 0;
  auto high = static_cast<std::int64_t>(entries.size()) - 1;
  for (auto k = midpoints; k-- > 0;) {
    const auto at = static_cast<std::int64_t>(detail::midpoint_entry(k, entries.size(), midpoints));
    if (key(at).hash < hash) {
      high = at;
    }
  }
  for (std::uint64_t k = 0; k < midpoints; ++k) {
    const auto at = static_cast<std::int64_t>(detail::midpoint_entry(k, entries.size(), midpoints));
    if (key(at).hash > hash) {
      low = at;
    }
  }
  const auto scan = [&] {
    std::optional<IndexEntry> best;
    for (const auto& entry : entries) {
      if (entry.hash == hash && entry.position < limit &&
          (!best || entry.position > best->position) && value(filter(entry))) {
        best = entry;
      }
    }
    return best;
  };
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    const auto entry = key(middle);
    if (entry.hash > hash) {
      low = middle + 1;
    } else if (entry.hash < hash) {
      high = middle - 1;
    } else if (!value(filter(entry))) {
      return scan();
    } else if (entry.position >= limit) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (high < 0 || key(high).hash != hash) {
    return std::nullopt;
  }
  if (!value(filter(key(high)))) {
    return scan();
  }
  return key(high).position < limit ? std::optional(key(high)) : std::nullopt;
}

TEST_F(LatestBeforeTest, BeginsAtTheMidpointsAroundTheRun) {
  // The search looks at number 3 first; one inside the run only would look at number 2 and find 1.
  const auto table = table_of(
      {make_entry(9, 0, 10), make_entry(5, 3, 100), make_entry(5, 2, 300), make_entry(5, 1, 200)});
  EXPECT_EQ(value(table->latest_before(StreamHash(5), LogPosition(250), nullptr)),
            make_entry(5, 3, 100));
}

TEST_F(LatestBeforeTest, LooksWhereTheServerLooksInATable) {
  for (int round = 0; round < 60; ++round) {
    // Up to 256 entries each one is a midpoint; of more only some are.
    const auto size = 1 + random_.below(round % 2 == 0 ? 60 : 1500);
    const auto hashes = 1 + random_.below(20);
    std::set<IndexEntry> sorted;
    for (std::uint64_t n = 0; n < size; ++n) {
      sorted.insert(make_entry(random_.below(hashes), static_cast<std::int64_t>(random_.below(40)),
                               static_cast<std::int64_t>(random_.below(1000))));
    }
    const Entries entries(sorted.rbegin(), sorted.rend());
    const auto table = table_of(entries);
    const auto midpoints = detail::required_midpoints(entries.size(), 8);
    for (int ask = 0; ask < 100; ++ask) {
      const StreamHash hash(random_.below(hashes + 1));
      const LogPosition limit(static_cast<std::int64_t>(random_.below(1100)));
      const auto foreign = random_.below(8);
      const EntryFilter filter = [&](const IndexEntry& entry) -> Result<bool> {
        return foreign != 0 || entry.position.value() % 5 != 0;
      };
      EXPECT_EQ(value(table->latest_before(hash, limit, filter)),
                plain_search(entries, midpoints, hash, limit, filter));
    }
  }
}

TEST_F(LatestBeforeTest, TakesTheStoredMidpointsOrThoseAServerWouldMake) {
  using detail::search_midpoints;
  EXPECT_EQ(search_midpoints({.version = 4, .count = 400, .midpoint_count = 10}, 8), 10U);
  EXPECT_EQ(search_midpoints({.version = 4, .count = 400, .midpoint_count = 0}, 8), 256U);
  EXPECT_EQ(search_midpoints({.version = 3, .count = 400, .midpoint_count = 0}, 16), 400U);
}

class LatestInMemory : public testing::Test {
 protected:
  std::optional<IndexEntry> find(const std::vector<IndexEntry>& entries, std::int64_t limit,
                                 const EntryFilter& filter) {
    const auto memory = detail::Memtable().with(entries);
    return value(memory->latest_before(StreamHash(5), LogPosition(limit), filter));
  }
};

TEST_F(LatestInMemory, LooksAtTheFirstEntryFirst) {
  const std::vector entries = {make_entry(5, 0, 300), make_entry(5, 1, 100), make_entry(5, 2, 200)};
  EXPECT_EQ(find(entries, 250, nullptr), std::nullopt);
  EXPECT_EQ(find(entries, 301, nullptr), make_entry(5, 2, 200));
}

TEST_F(LatestInMemory, HalvesUpwards) {
  // Number 2 is looked at first: with it behind the limit number 3 is never seen.
  const std::vector entries = {make_entry(5, 0, 100), make_entry(5, 1, 200), make_entry(5, 2, 400),
                               make_entry(5, 3, 300)};
  EXPECT_EQ(find(entries, 350, nullptr), make_entry(5, 1, 200));
  EXPECT_EQ(find(entries, 401, nullptr), make_entry(5, 3, 300));
}

TEST_F(LatestInMemory, AmongCollidingEntriesTakesTheGreatestNumber) {
  const std::vector entries = {make_entry(5, 0, 100), make_entry(5, 1, 300), make_entry(5, 2, 400),
                               make_entry(5, 3, 200)};
  const EntryFilter filter = [](const IndexEntry& entry) -> Result<bool> {
    return entry.number.value() != 2;
  };
  EXPECT_EQ(find(entries, 450, filter), make_entry(5, 3, 200)) << "not the one at 300";
  EXPECT_EQ(find(entries, 150, filter), make_entry(5, 0, 100));
  EXPECT_EQ(find(entries, 100, filter), std::nullopt);
}

}  // namespace
}  // namespace verger::index
