// What the server wrote, read back: its tables, map and filters, and its log indexed anew.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <functional>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/index/index.h"
#include "engine/index/index_map.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_directory.h"

namespace verger::index {
namespace {

using Entries = std::vector<IndexEntry>;

struct Archive {
  std::string file;      // relative to the fixtures
  std::string folder;    // of case.json, where there is one
  std::string snapshot;  // its member in case.json
};

void PrintTo(const Archive& archive, std::ostream* out) { *out << archive.file; }

std::vector<Archive> archives() {
  std::vector<Archive> all;
  for (const auto& name : test::scavenge_cases()) {
    for (const auto* snapshot :
         {"before", "after", "interrupted", "after-n1", "after-n2", "after-n3"}) {
      const auto file = "scavenge/" + name + "/" + snapshot + ".tar.zst";
      if (std::filesystem::exists(test::fixtures_directory() / file)) {
        all.push_back({file, "scavenge/" + name, snapshot});
      }
    }
  }
  all.push_back({"plain/never-scavenged/database.tar.zst", "", ""});
  all.push_back({"plain/killed-while-writing/database.tar.zst", "", ""});
  all.push_back({"plain/killed-while-writing/recovered.tar.zst", "", ""});
  return all;
}

nlohmann::json case_of(const Archive& archive) {
  if (archive.folder.empty()) {
    return {};
  }
  std::ifstream file(test::fixtures_directory() / archive.folder / "case.json");
  return nlohmann::json::parse(file);
}

/// Those whose index tables case.json lists.
std::vector<Archive> reported_archives() {
  auto all = archives();
  std::erase_if(all, [](const Archive& archive) {
    const auto reported = case_of(archive);
    return !reported.contains(archive.snapshot) || !reported[archive.snapshot].contains("tables");
  });
  if (all.empty()) {
    throw std::runtime_error("no case.json lists the tables of an index");
  }
  return all;
}

Entries scan(const std::shared_ptr<const PTable>& table) {
  PTableScanner scanner(table);
  Entries entries;
  while (true) {
    auto entry = scanner.next();
    EXPECT_TRUE(entry) << entry.error().message;
    if (!entry || !*entry) {
      return entries;
    }
    entries.push_back(**entry);
  }
}

class FixtureIndex : public testing::TestWithParam<Archive> {
 protected:
  void SetUp() override {
    test::unpack_fixture(GetParam().file, directory());
    auto opened =
        log::TransactionLog::open(files_, directory(), {}, system_clock(), random_, null_log());
    ASSERT_TRUE(opened) << opened.error().message;
    log_ = *std::move(opened);
    case_ = case_of(GetParam());
  }
  const Path& directory() const { return temp_.path(); }

  std::unique_ptr<Index> open(const Path& index, bool read_only,
                              std::uint64_t max_mem_table_size = 1'000'000) {
    IndexOptions options;
    options.read_only = read_only;
    options.max_mem_table_size = max_mem_table_size;
    options.cache_depth = 8;
    options.stream_existence_filter_size = 10'000;
    auto opened = Index::open(files_, index, *log_, options, system_clock(), random_, null_log());
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
  /// Every entry the index serves for the streams of the log, without what it serves twice.
  Entries served(const Index& index) {
    std::set<StreamHash> hashes;
    log::LogCursor cursor(*log_, LogPosition(0), log_->end());
    while (true) {
      const auto record = cursor.next();
      EXPECT_TRUE(record) << record.error().message;
      if (!record || !*record) {
        break;
      }
      if (const auto* prepare = (*record)->prepare()) {
        hashes.insert(hash_stream(prepare->stream));
      }
    }
    Entries all;
    for (const auto hash : hashes) {
      const auto found = index.range(hash, EventNumber(0), kDeletedStream, 1'000'000);
      EXPECT_TRUE(found) << found.error().message;
      all.insert(all.end(), found->begin(), found->end());
    }
    std::ranges::sort(all, std::greater{});
    return all;
  }
  bool scavenged() const {
    return std::ranges::any_of(log_->chunks(), [](const auto& c) { return c->header().scavenged; });
  }

  FileSystem& files_ = posix_file_system();
  SeededRandom random_{3};
  test::TempDirectory temp_;
  std::unique_ptr<log::TransactionLog> log_;
  nlohmann::json case_;
};

class ReportedIndex : public FixtureIndex {};

TEST_P(ReportedIndex, HasTheTablesTheServerReports) {
  const auto index = open(directory() / "index", true);
  ASSERT_NE(index, nullptr);
  const auto& expected = case_[GetParam().snapshot];
  const auto tables = index->tables();
  ASSERT_EQ(tables.size(), expected["tables"].size());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    EXPECT_EQ(tables[i].level, expected["tables"][i]["level"].get<int>());
    EXPECT_EQ(tables[i].position, expected["tables"][i]["position"].get<int>());
    EXPECT_EQ(tables[i].table->count(), expected["tables"][i]["entries"].get<std::uint64_t>());
    EXPECT_TRUE(tables[i].table->has_bloom_filter());
    EXPECT_TRUE(tables[i].table->verify_md5());
  }
  if (expected.contains("memtableEntries")) {
    EXPECT_EQ(index->memory_entry_count(), expected["memtableEntries"].get<std::uint64_t>());
  }
  if (expected.contains("indexCheckpoints") && expected["indexCheckpoints"].is_array()) {
    EXPECT_EQ(index->prepare_checkpoint().value(), expected["indexCheckpoints"][0].get<int>());
    EXPECT_EQ(index->commit_checkpoint().value(), expected["indexCheckpoints"][1].get<int>());
  }
}

TEST_P(FixtureIndex, IsWrittenAgainByteForByte) {
  const auto index = open(directory() / "index", true);
  ASSERT_NE(index, nullptr);
  const Path target = directory() / "again";
  ASSERT_TRUE(files_.make_directories(target));
  for (const auto& slot : index->tables()) {
    const auto entries = scan(slot.table);
    auto writer = PTableWriter::create(files_, target, random_.uuid(), entries.size(), 8);
    ASSERT_TRUE(writer) << writer.error().message;
    for (const auto& entry : entries) {
      ASSERT_TRUE(writer->append(entry));
      EXPECT_TRUE(slot.table->may_contain(entry.hash));
    }
    const auto path = writer->finish();
    ASSERT_TRUE(path) << path.error().message;
    const auto original = slot.table->path();
    EXPECT_EQ(read_file(files_, *path).value(), read_file(files_, original).value());
    EXPECT_EQ(read_file(files_, Path(path->string() + ".bloomfilter")).value(),
              read_file(files_, Path(original.string() + ".bloomfilter")).value());
  }
  if (const auto map = read_file(files_, directory() / "index" / kIndexMapName)) {
    const auto parsed = parse_index_map(as_text(*map));
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(format_index_map(*parsed), as_text(*map));
  }
}

TEST_P(FixtureIndex, IsWhatTheLogGivesWhenIndexedAgain) {
  const auto original = open(directory() / "index", true);
  ASSERT_NE(original, nullptr);
  auto expected = served(*original);
  // Below the point an index scavenge has dropped entries whose records are still in light chunks,
  // and kept some whose records are gone.
  LogPosition complete_from(0);
  if (scavenged() || GetParam().snapshot != "before") {
    if (case_.contains("scavengePoint") && case_["scavengePoint"].is_object()) {
      complete_from = LogPosition(case_["scavengePoint"]["pos"].get<std::int64_t>());
    }
  }
  const auto complete = [&](Entries entries) {
    std::erase_if(entries, [&](const IndexEntry& entry) { return entry.position < complete_from; });
    return entries;
  };
  for (const std::uint64_t max_mem_table_size : {1'000'000U, 50U}) {
    const auto name = "anew" + std::to_string(max_mem_table_size);
    {
      const auto index = open(directory() / name, false, max_mem_table_size);
      ASSERT_NE(index, nullptr);
      EXPECT_EQ(complete(served(*index)), complete(expected));
      EXPECT_LT(index->memory_entry_count(), max_mem_table_size);
      EXPECT_EQ(index->tables().empty(), served(*index).size() < max_mem_table_size);
      ASSERT_TRUE(index->rebuild(*log_)) << "explicitly";
      EXPECT_EQ(index->memory_entry_count(), 0U);
      EXPECT_EQ(complete(served(*index)), complete(expected));
    }
    const auto reopened = open(directory() / name, true);
    ASSERT_NE(reopened, nullptr);
    EXPECT_EQ(complete(served(*reopened)), complete(expected));
    EXPECT_EQ(reopened->memory_entry_count(), 0U);
  }
}

TEST_P(FixtureIndex, KnowsEveryStreamOfTheLog) {
  const auto index = open(directory() / "index", true);
  ASSERT_NE(index, nullptr);
  log::LogCursor cursor(*log_, std::max(LogPosition(0), index->commit_checkpoint()), log_->end());
  while (true) {
    const auto record = cursor.next();
    ASSERT_TRUE(record) << record.error().message;
    if (!*record) {
      break;
    }
    const auto* prepare = (*record)->prepare();
    if (prepare != nullptr && prepare->has(log::prepare_flags::kIsCommitted) &&
        prepare->has(log::prepare_flags::kData | log::prepare_flags::kStreamDelete)) {
      EXPECT_TRUE(index->may_exist(prepare->stream)) << prepare->stream;
    }
  }
  EXPECT_FALSE(index->may_exist("a stream that nobody has written"));
}

std::string archive_name(const testing::TestParamInfo<Archive>& info) {
  auto name = info.param.file.substr(0, info.param.file.find('.'));
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Server, FixtureIndex, testing::ValuesIn(archives()), archive_name);
INSTANTIATE_TEST_SUITE_P(Server, ReportedIndex, testing::ValuesIn(reported_archives()),
                         archive_name);

}  // namespace
}  // namespace verger::index
