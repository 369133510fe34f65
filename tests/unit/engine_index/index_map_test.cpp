#include "engine/index/index_map.h"

#include <cctype>

#include "engine/base/digest.h"
#include "engine/base/memory_file_system.h"

namespace verger::index {
namespace {

constexpr std::string_view kFromServer =
    "09AB3126F2072B4B0078B2F7F892FCF7\n"
    "2\n"
    "268437081/268437081\n"
    "2147483647\n"
    "0,0,d77cdf21-ff26-4111-9bed-e3aafc654dcb\n"
    "2,0,d030e465-f623-455d-888c-a634fa5bd2b4\n";

/// `rest` (from the newline of line 1 on) with its hash before it.
std::string with_hash(std::string rest) {
  auto digits = to_hex(md5(as_bytes(rest)));
  for (auto& digit : digits) {
    digit = static_cast<char>(std::toupper(digit));
  }
  return digits + rest;
}

TEST(IndexMap, OfTheServerIsReadAndWrittenBackTheSame) {
  const auto map = parse_index_map(kFromServer);
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->prepare_checkpoint, LogPosition(268437081));
  EXPECT_EQ(map->commit_checkpoint, LogPosition(268437081));
  EXPECT_EQ(map->max_auto_merge_level, 2147483647);
  ASSERT_EQ(map->tables.size(), 2U);
  EXPECT_EQ(map->tables[1], (IndexMap::Line{2, 0, "d030e465-f623-455d-888c-a634fa5bd2b4"}));
  EXPECT_EQ(format_index_map(*map), kFromServer);
}

TEST(IndexMap, HasTheReferencesHashes) {
  EXPECT_TRUE(format_index_map({}).starts_with("7B3FA3A59A5AA04F058659D4997A2E22\n"));
  IndexMap map;
  map.prepare_checkpoint = map.commit_checkpoint = LogPosition(700);
  map.tables.push_back({0, 0, "6b4b6bd2-5a6f-4f55-9b0a-0a3d0f6f3f10"});
  EXPECT_TRUE(format_index_map(map).starts_with("44A221400AF5A1F77E8DDD5F5A65EE33\n"));
}

TEST(IndexMap, IsReadWithTheNewlinesOfEitherPlatform) {
  const auto map = parse_index_map(with_hash("\r\n2\r\n7/9\r\n5\r\n0,0,a\r\n0,1,b\r\n"));
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->tables, (std::vector<IndexMap::Line>{{0, 0, "a"}, {0, 1, "b"}}));
  EXPECT_EQ(map->max_auto_merge_level, 5);
}

TEST(IndexMap, OfVersion1HasNoMergeLevel) {
  const auto map = parse_index_map(with_hash("\n1\n7/9\n0,0,a\n"));
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->max_auto_merge_level, 2147483647);
  EXPECT_EQ(map->tables.size(), 1U);
}

TEST(IndexMap, WithAnythingWrongIsCorrupt) {
  auto wrong_hash = std::string(kFromServer);
  wrong_hash[0] = '1';
  auto lower_case = std::string(kFromServer);
  lower_case[2] = 'a';
  const std::vector<std::string> texts{
      "",
      "\n2\n-1/-1\n5\n",
      wrong_hash,
      lower_case,
      with_hash(""),
      with_hash("\n"),
      with_hash("\nx\n7/9\n5\n"),
      with_hash("\n2\n7\n5\n"),
      with_hash("\n2\n-2/9\n5\n"),
      with_hash("\n2\n7/x\n5\n"),
      with_hash("\n2\n7/9\n"),
      with_hash("\n2\n7/9\nx\n"),
      with_hash("\n2\n-1/-1\n5\n0,0,a\n"),
      with_hash("\n2\n7/9\n5\n0,1,a\n"),
      with_hash("\n2\n7/9\n5\n0,0,a\n0,2,b\n"),
      with_hash("\n2\n7/9\n5\n0,0,a\n0,0,b\n"),
      with_hash("\n2\n7/9\n5\n0,0\n"),
      with_hash("\n2\n7/9\n5\n-1,0,a\n"),
      with_hash("\n2\n7/9\n5\n0,0,../a\n"),
      with_hash("\n2\n7/9\n5\n0,0,a\r\r\n"),  // the name would lose its last character
      with_hash("\n2\n7/9\n5\n0,0,a\tb\n"),
  };
  for (const auto& text : texts) {
    const auto map = parse_index_map(text);
    ASSERT_FALSE(map) << text;
    EXPECT_EQ(map.error().code, Errc::kCorruption) << text;
  }
}

TEST(IndexMap, MissingIsTheEmptyMapAndSavingReplacesIt) {
  MemoryFileSystem files;
  SeededRandom random(1);
  ASSERT_TRUE(files.make_directories("/index"));
  EXPECT_EQ(load_index_map(files, "/index").value(), IndexMap{});
  IndexMap map;
  map.prepare_checkpoint = LogPosition(5);
  map.commit_checkpoint = LogPosition(6);
  map.tables.push_back({1, 0, "table"});
  ASSERT_TRUE(save_index_map(files, "/index", map, random));
  EXPECT_EQ(load_index_map(files, "/index").value(), map);
  map.tables.clear();
  ASSERT_TRUE(save_index_map(files, "/index", map, random));
  ASSERT_TRUE(files.sync_directory("/"));  // the directory itself
  files.cut_power();
  EXPECT_EQ(load_index_map(files, "/index").value(), map);
  EXPECT_EQ(files.list("/index")->size(), 1U);
}

}  // namespace
}  // namespace verger::index
