// What opening does with an index whose files are damaged.
#include "engine/index/index_map.h"
#include "tests/unit/engine_index/index_fixture.h"

namespace verger::index {
namespace {

class DamagedIndex : public IndexTest {
 protected:
  DamagedIndex() {
    auto index = open();
    write_many(1, 25, index.get());
    entries_ = all(*index, "stream-0");
  }
  /// Header and footer of the live table, byte by byte.
  std::vector<std::uint64_t> places(const Path& table) {
    std::vector<std::uint64_t> places;
    const auto size = value(disk_.file_size(table));
    for (std::uint64_t n = 0; n < 128; ++n) {
      places.push_back(n);
      places.push_back(size - 144 + n);
    }
    return places;
  }
  Path table() {
    return Path(kDirectory) / value(load_index_map(disk_, kDirectory)).tables.front().file;
  }
  std::byte byte_at(const Path& path, std::uint64_t offset) {
    return value(read_file(disk_, path))[offset];
  }

  Entries entries_;
};

TEST_F(DamagedIndex, EveryByteOfHeaderAndFooterIsSeen) {
  options_.read_only = true;
  const auto path = table();
  for (const auto place : places(path)) {
    for (const unsigned flip : {0x01U, 0x02U, 0x40U, 0x80U}) {
      SCOPED_TRACE(fmt::format("offset {}, bits {:02x}", place, flip));
      const auto sound = byte_at(path, place);
      alter(path, place, sound ^ static_cast<std::byte>(flip));
      const auto opened = try_open();
      ASSERT_FALSE(opened);
      EXPECT_EQ(opened.error().code, Errc::kCorruption) << opened.error().message;
      EXPECT_NE(opened.error().message.find(path.string()), std::string::npos);
      EXPECT_NE(opened.error().message.find("verger-db index rebuild"), std::string::npos);
      alter(path, place, sound);
    }
  }
  EXPECT_EQ(all(*open(), "stream-0"), entries_);
}

TEST_F(DamagedIndex, IsRebuiltForWriting) {
  for (const std::uint64_t place : {0U, 1U, 2U, 127U, 500U, 1000U}) {
    SCOPED_TRACE(place);
    clock_.advance_seconds(1);
    const auto path = table();
    const auto size = value(disk_.file_size(path));
    const auto offset = place < 128 ? place : size - 144 + place % 128;
    alter(path, offset, byte_at(path, offset) ^ std::byte{0x40});
    EXPECT_EQ(all(*open(), "stream-0"), entries_);
    EXPECT_FALSE(value(disk_.exists(path)));
  }
  EXPECT_TRUE(has_backup());
}

TEST_F(DamagedIndex, ThatReachesTheChaserIsRebuilt) {
  const auto commit = value(load_index_map(disk_, kDirectory)).commit_checkpoint;
  const auto before = table();
  options_.chaser = commit + 1;
  EXPECT_EQ(all(*open(), "stream-0"), entries_);
  EXPECT_EQ(table(), before);
  EXPECT_FALSE(has_backup());

  options_.chaser = commit;
  options_.read_only = true;  // beside a server at work
  EXPECT_EQ(all(*open(), "stream-0"), entries_);
  options_.read_only = false;
  EXPECT_EQ(all(*open(), "stream-0"), entries_);
  EXPECT_FALSE(value(disk_.exists(before)));
  EXPECT_TRUE(has_backup());
}

}  // namespace
}  // namespace verger::index
