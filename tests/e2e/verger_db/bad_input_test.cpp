// Damaged and unsuitable directories: a message with what, where and what to do, the right exit
// code, and no file changed.
#include <fcntl.h>
#include <fmt/format.h>
#include <functional>
#include <unistd.h>

#include "tests/e2e/verger_db/verger_db_test.h"

namespace verger {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class VergerDbBadInput : public VergerDb {
 protected:
  /// The command fails with `code`, says each of `words` on stderr, and changes nothing.
  void expect_refusal(const std::vector<std::string>& arguments, int code,
                      const std::vector<std::string>& words) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    const auto before = test::tree_hash(database());
    const auto outcome = run(arguments);
    EXPECT_EQ(outcome.status, code) << outcome.out;
    for (const auto& word : words) {
      EXPECT_THAT(outcome.err, HasSubstr(word));
    }
    EXPECT_EQ(test::tree_hash(database()), before);
  }
  /// `verify` finds damage, names the file, and changes nothing.
  void expect_damage(const std::string& file, const std::vector<std::string>& words = {}) {
    SCOPED_TRACE(file);
    const auto before = test::tree_hash(database());
    const auto outcome = run_on_database("verify");
    EXPECT_EQ(outcome.status, 1) << outcome.out;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("DAMAGE"), HasSubstr(file)));
    for (const auto& word : words) {
      EXPECT_THAT(outcome.out, HasSubstr(word));
    }
    EXPECT_EQ(test::tree_hash(database()), before);
  }
  /// The state of a scavenge may change: a repetition resumes from it.
  std::string records_and_index() const {
    const auto copy = database().parent_path() / "copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(database(), copy, std::filesystem::copy_options::recursive);
    std::filesystem::remove_all(copy / "index" / "scavenging");
    std::filesystem::remove(copy / "verger.lock");
    return test::tree_hash(copy);
  }
  std::string ptable() const {
    for (const auto& entry : std::filesystem::directory_iterator(database() / "index")) {
      const auto name = entry.path().filename().string();
      if (name.size() == 36) {
        return "index/" + name;
      }
    }
    return "";
  }
};

TEST_F(VergerDbBadInput, UnknownOptionsAreUsageErrors) {
  unpack("plain/never-scavenged/database.tar.zst");
  const auto path = database().string();
  expect_refusal({"info", path, "--frobnicate"}, 64, {"--frobnicate", "--help"});
  expect_refusal({"frobnicate", path}, 64, {"no command 'frobnicate'", "--help"});
  expect_refusal({"verfy", path}, 64, {"no command 'verfy'; did you mean verify?"});
  expect_refusal({"info"}, 64, {"DIR", "--help"});
  expect_refusal({}, 64, {"--help"});
  expect_refusal({"info", path, "-o", "xml"}, 64, {"xml"});
  expect_refusal({"records", path, "--from", "abc"}, 64, {"abc"});
  expect_refusal({"scavenge", path, "--threads", "5"}, 64, {"--threads"});
  expect_refusal({"scavenge", path, "--stop-after", "lunch"}, 64, {"lunch", "accumulate"});
  expect_refusal({"records", path, "--limit", "-1"}, 64, {"--limit", "whole number"});
}

TEST_F(VergerDbBadInput, AMissingDirectory) {
  unpack("plain/never-scavenged/database.tar.zst");
  const auto missing = (database() / "nowhere").string();
  for (const auto* command : {"info", "records", "digest", "stats", "verify"}) {
    expect_refusal({command, missing}, 64, {missing});
  }
  expect_refusal({"index", "rebuild", missing}, 64, {missing});
  expect_refusal({"scavenge", missing}, 64, {missing});
}

TEST_F(VergerDbBadInput, ADirectoryWithoutADatabase) {
  std::filesystem::create_directories(database() / "sub");
  std::ofstream(database() / "notes.txt") << "nothing\n";
  expect_refusal({"info", database().string()}, 64, {database().string()});
  expect_refusal({"verify", database().string()}, 64, {database().string(), "no database"});
  expect_refusal({"index", "rebuild", database().string()}, 64, {database().string()});
}

TEST_F(VergerDbBadInput, AFileInsteadOfADirectory) {
  unpack("plain/never-scavenged/database.tar.zst");
  const auto file = (database() / "writer.chk").string();
  expect_refusal({"info", file}, 64, {file});
}

TEST_F(VergerDbBadInput, AnUnreadableDirectory) {
  unpack("plain/never-scavenged/database.tar.zst");
  std::vector<std::string> command{test::program("verger-db"), "info", database().string()};
  if (geteuid() == 0) {  // root reads everything: another user has to read
    const std::vector<std::string> nobody{"setpriv", "--reuid=65534", "--regid=65534",
                                          "--clear-groups"};
    auto check = nobody;
    check.insert(check.end(), {command.front(), "--help"});
    if (test::run(check).status != 0) {
      GTEST_SKIP() << "other users cannot run " << command.front();
    }
    command.insert(command.begin(), nobody.begin(), nobody.end());
  }
  std::filesystem::permissions(database(), std::filesystem::perms::none);
  const auto outcome = test::run(command);
  std::filesystem::permissions(database(), std::filesystem::perms::owner_all);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(database().string()), HasSubstr("ermission")));
}

TEST_F(VergerDbBadInput, ADirectoryThatAnotherProcessHolds) {
  unpack("scavenge/basic-limits/before.tar.zst");
  const auto lock_path = database() / "verger.lock";
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_GE(lock, 0);
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  ASSERT_EQ(fcntl(lock, F_OFD_SETLK, &whole), 0);
  expect_refusal({"index", "rebuild", database().string()}, 2, {"verger.lock"});
  expect_refusal({"scavenge", database().string()}, 2, {"verger.lock"});
  EXPECT_EQ(run_on_database("info").status, 0);  // reading takes no lock
  close(lock);
}

TEST_F(VergerDbBadInput, AServerThatHasTheFilesOpen) {
  unpack("scavenge/basic-limits/before.tar.zst");
  const int held = open((database() / "chunk-000003.000000").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(held, 0);
  const auto rebuild = std::vector<std::string>{"index", "rebuild", database().string()};
  expect_refusal(rebuild, 2, {std::to_string(getpid())});
  expect_refusal({"scavenge", database().string()}, 2, {std::to_string(getpid())});
  close(held);
}

TEST_F(VergerDbBadInput, ForeignFilesStayWhereTheyAre) {
  unpack("plain/never-scavenged/database.tar.zst");
  std::filesystem::create_directories(database() / "mine");
  std::ofstream(database() / "mine" / "notes") << "keep\n";
  std::ofstream(database() / "chunk-1.old") << "keep\n";
  const auto verified = run_on_database("verify");
  EXPECT_EQ(verified.status, 0) << verified.out;
  ASSERT_EQ(run({"index", "rebuild", database().string()}).status, 0);
  EXPECT_TRUE(std::filesystem::exists(database() / "mine" / "notes"));
  EXPECT_TRUE(std::filesystem::exists(database() / "chunk-1.old"));
}

TEST_F(VergerDbBadInput, ATruncatedChunk) {
  unpack("plain/never-scavenged/database.tar.zst");
  std::filesystem::resize_file(database() / "chunk-000001.000000", 5000);
  expect_damage("chunk-000001.000000");
  expect_refusal({"info", database().string()}, 1, {"chunk-000001.000000"});
  expect_refusal({"index", "rebuild", database().string()}, 1, {"chunk-000001.000000"});
}

TEST_F(VergerDbBadInput, AMissingChunk) {
  unpack("plain/never-scavenged/database.tar.zst");
  std::filesystem::remove(database() / "chunk-000001.000000");
  expect_damage("chunk-000001.000000", {"missing"});
  expect_refusal({"index", "rebuild", database().string()}, 1, {"1"});
}

TEST_F(VergerDbBadInput, AFlippedBitInEveryPartOfAChunk) {
  for (const std::int64_t offset : {0, 4, 8, 20, 130, 3000, -1, -120, -128}) {
    SCOPED_TRACE(offset);
    std::filesystem::remove_all(database());
    unpack("plain/never-scavenged/database.tar.zst");
    flip("chunk-000001.000000", offset);
    expect_damage("chunk-000001.000000");
  }
}

TEST_F(VergerDbBadInput, AFlippedBitInAPositionMap) {
  unpack("scavenge/basic-limits/after.tar.zst");
  const auto info = json_of("info");
  ASSERT_TRUE(info["chunks"][0]["scavenged"].get<bool>());
  const auto file = info["chunks"][0]["file"].get<std::string>();
  flip(file, 128 + info["chunks"][0]["dataBytes"].get<std::int64_t>() + 4);
  expect_damage(file, {"osition map"});
}

TEST_F(VergerDbBadInput, AFlippedBitInATable) {
  unpack("plain/never-scavenged/database.tar.zst");
  const auto table = ptable();
  ASSERT_NE(table, "");
  for (const std::int64_t offset : {1, 128 + 8, 128 + 17, -1, -20}) {
    SCOPED_TRACE(offset);
    std::filesystem::remove_all(database());
    unpack("plain/never-scavenged/database.tar.zst");
    flip(table, offset);
    expect_damage(table);
  }
}

TEST_F(VergerDbBadInput, ADamagedFilter) {
  unpack("plain/never-scavenged/database.tar.zst");
  const auto filter = ptable() + ".bloomfilter";
  overwrite(filter, 640, std::string(64, '\x11'));
  expect_damage(filter + " at 640", {"rebuild the index"});
  overwrite(filter, 0, "\x07");
  expect_damage(filter + " at 0");
}

TEST_F(VergerDbBadInput, ADamagedStateOfScavenges) {
  const std::string state = "index/scavenging/scavenging.db";
  unpack("scavenge/second-scavenge/before.tar.zst");
  overwrite(state, 0, "NotSQLite");
  expect_damage(state, {"begins anew"});
  unpack("scavenge/second-scavenge/before.tar.zst");
  overwrite(state, 3 * 16'384, std::string(200, '\x55'));
  expect_damage(state, {"begins anew"});
  unpack("scavenge/second-scavenge/before.tar.zst");
  std::filesystem::resize_file(database() / state, 3 * 16'384);
  expect_damage(state, {"begins anew"});
  const auto before = records_and_index();
  const auto outcome = run_on_database("scavenge");
  EXPECT_EQ(outcome.status, 1) << outcome.out;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(state), HasSubstr("index/scavenging")));
  EXPECT_EQ(records_and_index(), before);
  std::filesystem::remove_all(database() / "index" / "scavenging");
  EXPECT_EQ(run_on_database("scavenge").status, 0);
}

TEST_F(VergerDbBadInput, AnExistenceFilterWithoutAStream) {
  // The filter of a server that says of itself that it has the whole log.
  unpack("plain/never-scavenged/database.tar.zst");
  const std::string filter = "index/stream-existence/streamExistenceFilter.dat";
  std::filesystem::copy_file(database() / "writer.chk",
                             (database() / filter).replace_extension(".chk"),
                             std::filesystem::copy_options::overwrite_existing);
  const auto size = std::filesystem::file_size(database() / filter);
  overwrite(filter, 64, std::string(size - 64, '\0'));
  expect_damage(filter, {"to a server it does not exist"});
}

TEST_F(VergerDbBadInput, ADamagedIndexMap) {
  unpack("plain/never-scavenged/database.tar.zst");
  flip("index/indexmap", 40);
  expect_damage("indexmap");
  expect_refusal({"info", database().string()}, 1, {"indexmap"});
}

TEST_F(VergerDbBadInput, DamagedCheckpoints) {
  unpack("plain/never-scavenged/database.tar.zst");
  overwrite("chaser.chk", 0, std::string("\xff\xff\xff\x7f\0\0\0\0", 8));
  expect_damage("chaser.chk", {"writer.chk"});
  std::filesystem::resize_file(database() / "proposal.chk", 3);
  expect_damage("proposal.chk");
  for (const char* top : {"\x80", "\x01"}) {  // negative; behind the end
    unpack("plain/never-scavenged/database.tar.zst");
    overwrite("truncate.chk", 0, std::string(8, '\0'));
    overwrite("truncate.chk", 7, std::string_view(top, 1));
    expect_damage("truncate.chk", {"cannot be cut"});
    expect_refusal({"index", "rebuild", database().string()}, 1, {"truncate.chk", "-1"});
  }
}

TEST_F(VergerDbBadInput, ATruncationOfWhatWasProcessedIsLeftToANode) {
  unpack("scavenge/basic-limits/before.tar.zst");
  overwrite("truncate.chk", 0, std::string(8, '\0'));
  for (const auto& command : {std::vector<std::string>{"scavenge"}, {"index", "rebuild"}}) {
    auto arguments = command;
    arguments.push_back(database().string());
    expect_refusal(arguments, 2, {"truncate.chk", "start it first, or remove the file"});
  }
}

TEST_F(VergerDbBadInput, AWriterCheckpointThatIsTooOldLosesNothing) {
  unpack("plain/never-scavenged/database.tar.zst");
  overwrite("writer.chk", 0, std::string(8, '\0'));
  overwrite("chaser.chk", 0, std::string(8, '\0'));
  overwrite("epoch.chk", 0, std::string(8, '\0'));
  expect_refusal({"index", "rebuild", database().string()}, 1, {"writer.chk"});
  expect_damage("writer.chk");
}

TEST_F(VergerDbBadInput, AnotherChunkSize) {
  unpack("plain/never-scavenged/database.tar.zst");
  const auto path = database().string();
  for (const std::string command :
       {"info", "records", "verify", "stats", "digest", "estimate", "scavenge"}) {
    expect_refusal({command, path, "--chunk-size", "262144"}, 64, {"131072"});
  }
  expect_refusal({"index", "rebuild", path, "--chunk-size", "262144"}, 64, {"131072"});
  expect_refusal({"explain", path, "s", "--chunk-size", "262144"}, 64, {"131072"});
  for (const std::string no_size : {"0", "-1", "a", "1.5", "2147483648"}) {
    expect_refusal({"verify", path, "--chunk-size", no_size}, 64,
                   {"--chunk-size: '" + no_size + "' is not a whole number from 1 to 2147483647"});
  }
}

TEST_F(VergerDbBadInput, ANewerFormatVersion) {
  unpack("plain/never-scavenged/database.tar.zst");
  overwrite("chunk-000000.000000", 1, "\x09");
  expect_refusal({"info", database().string()}, 1, {"chunk-000000.000000", "9"});
  expect_damage("chunk-000000.000000");
}

TEST_F(VergerDbBadInput, ANewerVersionOfIndexFiles) {
  unpack("plain/never-scavenged/database.tar.zst");
  const auto table = ptable();
  overwrite(table, 1, "\x09");
  expect_damage(table);
  expect_refusal({"info", database().string()}, 1, {table, "9"});
  expect_refusal({"scavenge", database().string()}, 1, {table, "9"});
}

TEST_F(VergerDbBadInput, APointThatIsNotThere) {
  unpack("scavenge/basic-limits/before.tar.zst");
  expect_refusal({"digest", database().string(), "--point", "77"}, 1, {"77", "verger-db info"});
}

TEST_F(VergerDbBadInput, AScavengeRefusesWhatItCannotRelyOn) {
  struct Case {
    const char* what;
    std::function<void()> damage;
    std::vector<std::string> words;
    std::vector<std::string> more = {};
    int code = 1;
  };
  const auto table = [&] { return ptable(); };
  const std::vector<Case> cases{
      {"truncated chunk",
       [&] { std::filesystem::resize_file(database() / "chunk-000001.000000", 5000); },
       {"chunk-000001.000000"}},
      {"missing chunk",
       [&] { std::filesystem::remove(database() / "chunk-000001.000000"); },
       {"1"}},
      {"damaged header", [&] { flip("chunk-000001.000000", 8); }, {"chunk-000001.000000"}},
      {"damaged footer", [&] { flip("chunk-000001.000000", -120); }, {"chunk-000001.000000"}},
      {"newer format", [&] { overwrite("chunk-000000.000000", 1, "\x09"); }, {"9"}},
      {"other chunk size", [] {}, {"262144", "1048576"}, {"--chunk-size", "1048576"}, 64},
      {"damaged index map", [&] { flip("index/indexmap", 40); }, {"indexmap"}},
      {"truncated table",
       [&] { std::filesystem::resize_file(database() / table(), 200); },
       {"index/", "rebuild"}},
      {"old writer.chk", [&] { overwrite("writer.chk", 0, std::string(8, '\0')); }, {"writer.chk"}},
      {"no such point", [] {}, {"scavenge point 77", "0 to 0"}, {"--point", "77"}},
      {"no such point file", [] {}, {"nowhere.json"}, {"--point-file", "nowhere.json"}},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.what);
    std::filesystem::remove_all(database());
    unpack("scavenge/basic-limits/before.tar.zst");
    each.damage();
    std::vector<std::string> arguments{"scavenge", database().string()};
    arguments.insert(arguments.end(), each.more.begin(), each.more.end());
    expect_refusal(arguments, each.code, each.words);
  }
}

TEST_F(VergerDbBadInput, AScavengeThatMeetsADamagedRecordLosesNothing) {
  unpack("scavenge/basic-limits/before.tar.zst");
  const auto records = lines_of(run_on_database("records", {"-o", "json"}).out);
  const auto chunk_size = json_of("info")["chunkSize"].get<std::int64_t>();
  const auto position = records[5]["position"].get<std::int64_t>();
  ASSERT_LT(position, chunk_size);
  flip("chunk-000000.000000", 128 + position + 1);  // its length
  const auto before = records_and_index();
  const auto outcome = run_on_database("scavenge");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("chunk-000000.000000"), HasSubstr("verger-db verify")));
  EXPECT_EQ(records_and_index(), before);
}

TEST_F(VergerDbBadInput, AScavengeDoesNothingByAChunkWithAFlippedBit) {
  unpack("scavenge/basic-limits/before.tar.zst");
  ASSERT_EQ(run_on_database("scavenge").status, 0);
  const auto sound = json_of("digest");
  const auto chunk_size = json_of("info")["chunkSize"].get<std::int64_t>();
  for (const auto* file : {"chunk-000000.000000", "chunk-000004.000000", "chunk-000008.000000"}) {
    for (const std::int64_t offset : {128 + 300, 128 + 20'000}) {
      SCOPED_TRACE(fmt::format("{} {}", file, offset));
      std::filesystem::remove_all(database());
      unpack("scavenge/basic-limits/before.tar.zst");
      ASSERT_LT(offset, chunk_size);
      flip(file, offset);
      const auto before = records_and_index();
      const auto outcome = run_on_database("scavenge");
      EXPECT_EQ(outcome.status, 1) << outcome.out;
      EXPECT_THAT(outcome.err, AllOf(HasSubstr(file), HasSubstr("another node")));
      EXPECT_EQ(records_and_index(), before);
      flip(file, offset);  // the file from a backup
      EXPECT_EQ(run_on_database("scavenge").status, 0);
      EXPECT_EQ(json_of("digest"), sound);
    }
  }
}

TEST_F(VergerDbBadInput, AScavengeDoesNothingByATableWithAFlippedBit) {
  unpack("scavenge/basic-limits/before.tar.zst");
  ASSERT_EQ(run_on_database("scavenge").status, 0);
  const auto sound = json_of("digest");
  for (const std::int64_t offset : {128 + 1, 128 + 9, 128 + 18, 128 + 24 * 100 + 16, -1}) {
    SCOPED_TRACE(offset);
    std::filesystem::remove_all(database());
    unpack("scavenge/basic-limits/before.tar.zst");
    const auto table = ptable();
    flip(table, offset);
    const auto before = records_and_index();
    const auto outcome = run_on_database("scavenge");
    EXPECT_EQ(outcome.status, 1) << outcome.out;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(table), HasSubstr("index rebuild")));
    EXPECT_EQ(records_and_index(), before);
    EXPECT_EQ(run({"index", "rebuild", database().string()}).status, 0);
    EXPECT_EQ(run_on_database("scavenge").status, 0);
    EXPECT_EQ(json_of("digest"), sound);
  }
}

TEST_F(VergerDbBadInput, AScavengeNamesMetadataInATransaction) {
  unpack("scavenge/fails-metadata-in-transaction/before.tar.zst");
  const auto before = records_and_index();
  const auto outcome = run_on_database("scavenge");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("\"$$bad\" at log position "), HasSubstr("untouched")));
  EXPECT_EQ(records_and_index(), before);
}

TEST_F(VergerDbBadInput, AScavengeGetsOverALateCollision) {
  unpack("scavenge/fails-late-collision/before.tar.zst");
  const auto outcome = run_on_database("scavenge");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto verified = run_on_database("verify");
  EXPECT_EQ(verified.status, 0) << verified.out;
}

TEST_F(VergerDbBadInput, DatabasesOfDifferentChunkSizesDiffer) {
  unpack("plain/never-scavenged/database.tar.zst");
  const auto other = database().parent_path() / "other";
  test::unpack_fixture("plain/killed-while-writing/database.tar.zst", other);
  const auto outcome = run({"diff", database().string(), other.string()});
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("the databases differ"), HasSubstr("131072"), HasSubstr("262144")));
  const auto reported =
      nlohmann::json::parse(run({"diff", database().string(), other.string(), "-o", "json"}).out);
  EXPECT_EQ(reported.at("equal"), false);
  EXPECT_TRUE(reported.at("position").is_null());
}

}  // namespace
}  // namespace verger
