#include "engine/index/ptable.h"

#include "engine/base/digest.h"
#include "engine/base/memory_file_system.h"
#include "engine/base/random.h"
#include "engine/index/detail/ptable_format.h"
#include "tests/unit/engine_index/index_fixture.h"

namespace verger::index {
namespace {

class PTableFile : public testing::Test {
 protected:
  PTableFile() { EXPECT_TRUE(files_.make_directories("/index")); }

  Path write(const std::vector<IndexEntry>& entries, int depth = 16) {
    auto writer = PTableWriter::create(files_, "/index", random_.uuid(), entries.size(), depth);
    EXPECT_TRUE(writer) << writer.error().message;
    for (const auto& entry : entries) {
      EXPECT_TRUE(writer->append(entry));
    }
    auto path = writer->finish();
    EXPECT_TRUE(path) << path.error().message;
    return *path;
  }
  std::shared_ptr<const PTable> open(const Path& path) {
    auto table = PTable::open(files_, path, 16);
    EXPECT_TRUE(table) << table.error().message;
    return table ? *table : nullptr;
  }
  Bytes bytes(const Path& path) { return read_file(files_, path).value(); }
  void alter(const Path& path, std::uint64_t offset, std::byte value) {
    auto file = files_.open(path, OpenMode::kReadWrite);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write_at(offset, ByteView(&value, 1)));
  }
  std::vector<IndexEntry> scan(const Path& path) {
    PTableScanner scanner(open(path));
    std::vector<IndexEntry> entries;
    while (true) {
      auto entry = scanner.next();
      EXPECT_TRUE(entry) << entry.error().message;
      if (!entry || !*entry) {
        return entries;
      }
      entries.push_back(**entry);
    }
  }

  MemoryFileSystem files_;
  SeededRandom random_{7};
};

TEST_F(PTableFile, OfThreeEntriesHasTheServersBytes) {
  const auto path = write({make_entry(0xe13439f19243cbf6U, 1, 268437081),
                           make_entry(0xd808a9472d2f8d98U, 4, 268436711),
                           make_entry(0xd808a9472d2f8d98U, 3, 268436285)});
  const auto file = bytes(path);
  ASSERT_EQ(file.size(), 416U);
  EXPECT_EQ(to_hex(ByteView(file).first(2)), "0104");
  EXPECT_EQ(to_hex(ByteView(file).subspan(128, 24)),
            "0100000000000000f6cb4392f13934e15906001000000000");
  EXPECT_EQ(to_hex(ByteView(file).subspan(224, 24)),
            "0400000000000000988d2f2d47a908d80100000000000000");
  EXPECT_EQ(to_hex(ByteView(file).subspan(272, 6)), "010403000000");
  EXPECT_EQ(to_hex(ByteView(file).last(16)), "0125b475c1dee5d19571af7257339a6b");
}

TEST_F(PTableFile, OfOneEntryAndOfNoneHasTheReferencesMd5) {
  const auto one = bytes(write({make_entry(0xd23edcdcfb7ce71fU, 0, 0)}));
  EXPECT_EQ(one.size(), 344U);
  EXPECT_EQ(to_hex(ByteView(one).last(16)), "2356bf78f040233b7826dbb7d3e7c8ae");
  const auto path = write({});
  const auto none = bytes(path);
  EXPECT_EQ(none.size(), 272U);
  EXPECT_EQ(to_hex(ByteView(none).last(16)), "380080f57620b6f0f726ef300a87c012");
  EXPECT_EQ(open(path)->count(), 0U);
  EXPECT_EQ(open(path)->latest(StreamHash(1)).value(), std::nullopt);
}

TEST(PTableFormat, HasTheServersNumberOfMidpoints) {
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> rows{{0, 0},
                                                                  {1, 2},
                                                                  {2, 2},
                                                                  {3, 3},
                                                                  {65'536, 65'536},
                                                                  {65'537, 65'536},
                                                                  {1'000'000, 65'536},
                                                                  {20'000'000, 65'536},
                                                                  {32'000'000, 131'072},
                                                                  {100'000'000, 524'288},
                                                                  {1'000'000'000, 4'194'304}};
  for (const auto& [count, midpoints] : rows) {
    EXPECT_EQ(detail::required_midpoints(count, 16), midpoints) << count;
  }
  EXPECT_EQ(detail::required_midpoints(60'002, 8), 256U);
  EXPECT_EQ(detail::midpoint_entry(255, 60'002, 256), 60'001U);
  EXPECT_EQ(detail::midpoint_entry(1, 60'002, 256), 235U);
}

/// A table of version 1 to 3 by hand: they have neither midpoints nor footer.
Bytes old_table(int version, const std::vector<IndexEntry>& entries) {
  Bytes file(128);
  file[0] = std::byte{1};
  file[1] = std::byte(static_cast<std::uint8_t>(version));
  for (const auto& entry : entries) {
    if (version < 3) {
      append_le(file, static_cast<std::int32_t>(entry.number.value()));
    } else {
      append_le(file, entry.number.value());
    }
    if (version == 1) {
      append_le(file, static_cast<std::uint32_t>(entry.hash.value() >> 32U));
    } else {
      append_le(file, entry.hash.value());
    }
    append_le(file, entry.position.value());
  }
  append_bytes(file, md5(file));
  return file;
}

TEST_F(PTableFile, OfAnOlderVersionIsRead) {
  const std::vector<IndexEntry> entries{
      make_entry(0xd23edcdcfb7ce71fU, 2147483647, 900), make_entry(0xd23edcdcfb7ce71fU, 1, 250),
      make_entry(0xd23edcdcfb7ce71fU, 0, 0), make_entry(0xb339488fb5d947abU, 0, 700)};
  for (int version = 1; version <= 3; ++version) {
    SCOPED_TRACE(version);
    const Path path = "/index/old" + std::to_string(version);
    ASSERT_TRUE(write_file_durably(files_, path, old_table(version, entries)));
    const auto table = open(path);
    EXPECT_EQ(table->version(), version);
    EXPECT_EQ(table->count(), 4U);
    EXPECT_TRUE(table->verify_md5());
    std::vector<IndexEntry> found;
    ASSERT_TRUE(table->range(entries[0].hash, EventNumber(0), kDeletedStream, 10, found));
    EXPECT_EQ(found, (std::vector(entries.begin(), entries.begin() + 3)));
    EXPECT_EQ(table->latest(entries[3].hash).value(), entries[3]);
    EXPECT_EQ(scan(path).at(3).hash.value(), version == 1 ? 0xb339488fU : 0xb339488fb5d947abU);
  }
}

TEST_F(PTableFile, OfANewerVersionIsRefusedAsUnsupported) {
  const auto path = write({make_entry(1, 0, 0)});
  alter(path, 1, std::byte{5});
  const auto damaged = PTable::open(files_, path, 16);  // its footer says 4
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, Errc::kCorruption);
  alter(path, files_.file_size(path).value() - 144 + 1, std::byte{5});
  const auto table = PTable::open(files_, path, 16);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, Errc::kUnsupported);
}

TEST_F(PTableFile, WithABrokenStructureIsRefusedNamingTheFile) {
  const auto good = bytes(write({make_entry(2, 1, 40), make_entry(1, 0, 0)}));
  const auto refused = [&](Bytes content) {
    const Path path = "/index/broken";
    EXPECT_TRUE(write_file_durably(files_, path, content));
    const auto table = PTable::open(files_, path, 16);
    return !table && table.error().code == Errc::kCorruption &&
           table.error().message.find("/index/broken") != std::string::npos;
  };
  auto type = good;
  type[0] = std::byte{2};
  EXPECT_TRUE(refused(type));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(refused({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)})) << size;
  }
  auto footer = good;
  footer[footer.size() - 144 + 1] = std::byte{3};
  EXPECT_TRUE(refused(footer));
  auto midpoints = good;
  midpoints[midpoints.size() - 144 + 2] = std::byte{1};
  EXPECT_TRUE(refused(midpoints));
  auto order = good;  // the hash of the first midpoint below that of the second
  order[128 + 2 * 24 + 8] = std::byte{0};
  EXPECT_TRUE(refused(order));
}

TEST_F(PTableFile, WithAFlippedBitFailsItsMd5) {
  const auto path = write({make_entry(2, 1, 40), make_entry(1, 0, 0)});
  EXPECT_TRUE(open(path)->verify_md5());
  alter(path, 128 + 16, std::byte{41});
  EXPECT_EQ(open(path)->verify_md5().error().code, Errc::kCorruption);
}

TEST_F(PTableFile, WithEntriesOutOfOrderFailsTheLookup) {
  std::vector<IndexEntry> entries;
  for (std::int64_t i = 5000; i > 0; --i) {
    entries.push_back(make_entry(static_cast<std::uint64_t>(i) << 8U, 0, i));
  }
  const auto path = write(entries, 8);
  const auto table = open(path);
  ASSERT_TRUE(table->latest(StreamHash(2500 << 8)).value());
  for (const std::uint64_t n : {2500U, 2499U, 2501U}) {
    alter(path, table->entry_offset(n) + 8 + 7, std::byte{0x7F});
  }
  const auto found = table->latest(StreamHash(2500 << 8));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::kCorruption);
  EXPECT_THAT(found.error().message, testing::HasSubstr(path.string()));
}

TEST_F(PTableFile, IsScannedEntryByEntryAndManyAtOnce) {
  constexpr std::int64_t kEntries = 20'000;  // more than are in memory at once
  std::vector<IndexEntry> entries;
  for (std::int64_t n = 0; n < kEntries; ++n) {
    entries.push_back(make_entry(7, kEntries - n, kEntries - n));
  }
  const auto table = open(write(entries));
  PTableScanner scanner(table);
  std::vector<IndexEntry> found;
  for (std::size_t turn = 0;; ++turn) {
    const auto ahead = scanner.ahead();
    ASSERT_TRUE(ahead);
    EXPECT_EQ(ahead->empty(), found.size() == entries.size());
    const auto some = ahead->first(std::min<std::size_t>(ahead->size(), turn));
    found.insert(found.end(), some.begin(), some.end());
    scanner.skip(some.size());
    const auto entry = scanner.next();
    ASSERT_TRUE(entry);
    if (*entry == nullptr) {
      break;
    }
    found.push_back(**entry);
  }
  EXPECT_EQ(found, entries);
  EXPECT_TRUE(scanner.ahead()->empty());
  EXPECT_EQ(*scanner.next(), nullptr);
}

TEST_F(PTableFile, AbandonedBeforeItIsFinishedIsRemoved) {
  {
    auto writer = PTableWriter::create(files_, "/index", random_.uuid(), 1, 16);
    ASSERT_TRUE(writer->append(make_entry(1, 0, 0)));
  }
  EXPECT_TRUE(files_.list("/index")->empty());
}

TEST_F(PTableFile, RefusesAscendingEntries) {
  auto writer = PTableWriter::create(files_, "/index", random_.uuid(), 2, 16);
  ASSERT_TRUE(writer->append(make_entry(1, 0, 0)));
  ASSERT_TRUE(writer->append(make_entry(1, 0, 0)));
  EXPECT_EQ(writer->append(make_entry(1, 1, 0)).error().code, Errc::kInvalidArgument);
}

struct SearchCase {
  std::size_t entries;
  int depth;
  bool with_midpoints;
};

class PTableSearch : public PTableFile, public testing::WithParamInterface<SearchCase> {};

TEST_P(PTableSearch, AnswersLikeALinearScan) {
  std::vector<IndexEntry> entries;
  for (std::size_t i = 0; i < GetParam().entries; ++i) {
    const auto hash = (random_.below(GetParam().entries / 20 + 1) * 3 + 1) << 40U;
    entries.push_back(make_entry(hash, static_cast<std::int64_t>(random_.below(60)),
                                 static_cast<std::int64_t>(random_.below(1'000'000))));
  }
  entries.push_back(entries.front());  // identical triples are allowed
  std::ranges::sort(entries, std::greater{});
  Path path;
  if (GetParam().with_midpoints) {
    path = write(entries, GetParam().depth);
  } else {
    path = "/index/v3";
    ASSERT_TRUE(write_file_durably(files_, path, old_table(3, entries)));
  }
  EXPECT_EQ(scan(path), entries);
  const auto table = open(path);
  for (int round = 0; round < 300; ++round) {
    const auto hash =
        StreamHash((random_.below(GetParam().entries / 20 + 2) * 3 + random_.below(2)) << 40U);
    const auto from = EventNumber(static_cast<std::int64_t>(random_.below(60)));
    const auto to = EventNumber(static_cast<std::int64_t>(random_.below(60)));
    const auto limit = random_.below(8) + 1;
    std::vector<IndexEntry> expected;
    std::optional<IndexEntry> latest, oldest, previous, next;
    for (const auto& entry : entries) {
      if (entry.hash != hash) {
        continue;
      }
      latest = latest ? latest : entry;
      oldest = entry;
      previous = !previous && entry.number < from ? entry : previous;
      next = entry.number > from ? std::optional(entry) : next;
      if (entry.number >= from && entry.number <= to) {
        expected.push_back(entry);
      }
    }
    auto forward = expected;
    std::ranges::reverse(forward);
    forward.resize(std::min<std::size_t>(forward.size(), limit));
    expected.resize(std::min<std::size_t>(expected.size(), limit));
    std::vector<IndexEntry> found;
    ASSERT_TRUE(table->range(hash, from, to, limit, found));
    EXPECT_EQ(found, expected);
    found.clear();
    ASSERT_TRUE(table->range_forward(hash, from, to, limit, found));
    EXPECT_EQ(found, forward);
    EXPECT_EQ(table->latest(hash).value(), latest);
    EXPECT_EQ(table->oldest(hash).value(), oldest);
    EXPECT_EQ(table->previous(hash, from).value(), previous);
    EXPECT_EQ(table->next(hash, from).value(), next);
    if (latest) {
      EXPECT_TRUE(table->may_contain(hash));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, PTableSearch,
                         testing::Values(SearchCase{1, 8, true}, SearchCase{100, 8, true},
                                         SearchCase{300, 8, true}, SearchCase{40'000, 8, true},
                                         SearchCase{40'000, 16, true},
                                         SearchCase{10'000, 8, false}));

class LatestBefore : public PTableFile {
 protected:
  std::optional<IndexEntry> find(std::int64_t limit, const EntryFilter& filter) {
    auto found = table_->latest_before(StreamHash(5), LogPosition(limit), filter);
    EXPECT_TRUE(found) << found.error().message;
    return *found;
  }
  std::shared_ptr<const PTable> table_ =
      open(write({make_entry(9, 9, 5), make_entry(5, 3, 400), make_entry(5, 2, 200),
                  make_entry(5, 1, 300), make_entry(5, 0, 100), make_entry(2, 0, 50)}));
};

TEST_F(LatestBefore, FindsTheLastEntryBelowThePositionByBinarySearch) {
  EXPECT_EQ(find(401, nullptr), make_entry(5, 3, 400));
  EXPECT_EQ(find(400, nullptr), make_entry(5, 2, 200));
  EXPECT_EQ(find(101, nullptr), make_entry(5, 0, 100));
  EXPECT_EQ(find(100, nullptr), std::nullopt);
}

TEST_F(LatestBefore, LooksAtEveryEntryWhenAnotherStreamHasTheHash) {
  const EntryFilter ours = [](const IndexEntry& entry) -> Result<bool> {
    return entry.number.value() != 2;  // number 2 is of the colliding stream
  };
  EXPECT_EQ(find(400, ours), make_entry(5, 1, 300));
  EXPECT_EQ(find(1000, ours), make_entry(5, 3, 400));
  EXPECT_EQ(find(300, ours), make_entry(5, 0, 100));
  EXPECT_EQ(find(50, ours), std::nullopt);
}

TEST_F(LatestBefore, HandsOnTheFiltersError) {
  const EntryFilter broken = [](const IndexEntry&) -> Result<bool> {
    return Error{Errc::kIo, "no disk"};
  };
  EXPECT_EQ(table_->latest_before(StreamHash(5), LogPosition(400), broken).error().code, Errc::kIo);
}

}  // namespace
}  // namespace verger::index
