// What the commands say about databases that a server wrote.
#include "tests/e2e/verger_db/verger_db_test.h"

namespace verger {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

nlohmann::json file_of(const std::string& relative) {
  std::ifstream file(test::fixtures_directory() / relative);
  return nlohmann::json::parse(file);
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  std::size_t width = 0;
  for (const char byte : text) {
    if (byte == '\n') {
      widest = std::max(widest, width);
      width = 0;
    } else if ((static_cast<unsigned char>(byte) & 0xC0U) != 0x80) {
      ++width;
    }
  }
  return widest;
}

TEST_F(VergerDb, InfoShowsWhatTheServerReportedOfItsChunks) {
  unpack("plain/never-scavenged/database.tar.zst");
  const auto listing = file_of("plain/never-scavenged/listing.json");
  const auto info = json_of("info");
  EXPECT_EQ(info["chunkSize"], 131072);
  EXPECT_EQ(info["checkpoints"]["writer"], listing["checkpoints"]["writer"]);
  EXPECT_EQ(info["checkpoints"]["chaser"], listing["checkpoints"]["chaser"]);
  EXPECT_EQ(info["checkpoints"]["epoch"], listing["checkpoints"]["epoch"]);
  ASSERT_EQ(info["chunks"].size(), listing["chunks"].size());
  for (std::size_t i = 0; i < info["chunks"].size(); ++i) {
    const auto& ours = info["chunks"][i];
    const auto& servers = listing["chunks"][i];
    EXPECT_EQ(ours["file"], servers["file"]);
    EXPECT_EQ(ours["start"], servers["start"]);
    EXPECT_EQ(ours["scavenged"], servers["scavenged"]);
    EXPECT_EQ(ours["fileBytes"], servers["fileSize"]);
    if (!servers["active"].get<bool>()) {
      EXPECT_EQ(ours["dataBytes"], servers["physicalDataSize"]);
      EXPECT_EQ(ours["logicalBytes"], servers["logicalDataSize"]);
    }
  }
  EXPECT_EQ(info["index"]["tables"].size(), 1U);
}

TEST_F(VergerDb, InfoListsScavengePoints) {
  unpack("scavenge/records-after-point/before.tar.zst");
  const auto expected = file_of("scavenge/records-after-point/case.json");
  const auto points = json_of("info")["scavengePoints"];
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[1]["position"], expected["scavengePoint"]["pos"]);
  EXPECT_EQ(points[1]["threshold"], expected["scavengePoint"]["threshold"]);
}

TEST_F(VergerDb, TablesFitAHundredColumns) {
  unpack("scavenge/everything/after.tar.zst");
  for (const auto* command : {"info", "records", "digest", "stats", "verify"}) {
    const auto outcome = run_on_database(command);
    EXPECT_EQ(outcome.status, 0) << command << outcome.err << outcome.out;
    EXPECT_LE(widest_line(outcome.out), 100U) << command;
  }
}

TEST_F(VergerDb, ReadingCommandsChangeNothing) {
  unpack("scavenge/everything/after.tar.zst");
  const auto before = test::tree_hash(database());
  for (const auto* command : {"info", "records", "digest", "stats", "verify"}) {
    EXPECT_EQ(run_on_database(command).status, 0) << command;
    EXPECT_EQ(test::tree_hash(database()), before) << command;
  }
}

TEST_F(VergerDb, RecordsListsTheRecordsOfAStream) {
  unpack("plain/never-scavenged/database.tar.zst");
  const auto listing = file_of("plain/never-scavenged/listing.json");
  const auto outcome = run_on_database("records", {"--stream", "one-0", "-o", "json"});
  const auto lines = lines_of(outcome.out);
  const auto& events = listing["streams"]["one-0"]["events"];
  ASSERT_EQ(lines.size(), events.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["position"], events[i]["prepare"]);
    EXPECT_EQ(lines[i]["eventId"], events[i]["id"]);
    EXPECT_EQ(lines[i]["dataBytes"], events[i]["dataBytes"]);
  }
}

TEST_F(VergerDb, RecordsKeepsToItsBounds) {
  unpack("plain/never-scavenged/database.tar.zst");
  const auto all = lines_of(run_on_database("records", {"-o", "json"}).out);
  ASSERT_GT(all.size(), 10U);
  const auto from = all[3]["position"].dump();
  const auto to = all[7]["position"].dump();
  const auto some =
      lines_of(run_on_database("records", {"--from", from, "--to", to, "-o", "json"}).out);
  ASSERT_EQ(some.size(), 4U);
  EXPECT_EQ(some.front(), all[3]);
  EXPECT_EQ(lines_of(run_on_database("records", {"--limit", "2", "-o", "json"}).out).size(), 2U);
}

TEST_F(VergerDb, DigestsOfTheThreeNodesOfAClusterAgree) {
  const std::string point = "0";
  std::vector<nlohmann::json> digests;
  for (const auto* node : {"n1", "n2", "n3"}) {
    std::filesystem::remove_all(database());
    unpack(fmt::format("scavenge/cluster-follower-makes-point/after-{}.tar.zst", node));
    digests.push_back(json_of("digest", {"--point", point}));
  }
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_EQ(digests[0], digests[2]);
  EXPECT_GT(digests[0]["records"], 0);
}

TEST_F(VergerDb, AScavengeLeavesTheReadableDigestAsItWas) {
  unpack("scavenge/basic-limits/before.tar.zst");
  const auto before = json_of("digest", {"--point", "0"});
  std::filesystem::remove_all(database());
  unpack("scavenge/basic-limits/after.tar.zst");
  const auto after = json_of("digest", {"--point", "0"});
  EXPECT_EQ(before["readable"], after["readable"]);
  EXPECT_EQ(before["readableEvents"], after["readableEvents"]);
  EXPECT_NE(before["logical"], after["logical"]);
}

TEST_F(VergerDb, StatsCountsEveryRecord) {
  unpack("scavenge/everything/before.tar.zst");
  const auto stats = json_of("stats", {"--top", "5"});
  const auto records = lines_of(run_on_database("records", {"-o", "json"}).out);
  EXPECT_EQ(stats["prepares"].get<std::size_t>() + stats["commits"].get<std::size_t>() +
                stats["epochs"].get<std::size_t>(),
            records.size());
  EXPECT_EQ(stats["largest"].size(), 5U);
}

TEST_F(VergerDb, DiffNamesTheFirstDifference) {
  unpack("scavenge/basic-limits/before.tar.zst");
  const auto after = database().parent_path() / "after";
  test::unpack_fixture("scavenge/basic-limits/after.tar.zst", after);
  EXPECT_EQ(run({"diff", after.string(), after.string()}).status, 0);
  const auto outcome = run({"diff", database().string(), after.string()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("first difference in chunk"), HasSubstr("only A has")));
}

TEST_F(VergerDb, RebuildingTheIndexServesTheSameReads) {
  unpack("plain/never-scavenged/database.tar.zst");
  const auto before = json_of("digest");
  const auto rebuilt = run_on_database("index", {});  // "index DIR" alone names no action
  EXPECT_EQ(rebuilt.status, 64);
  const auto outcome =
      run({"index", "rebuild", database().string(), "--max-mem-table-size", "100"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("rebuilt"));
  EXPECT_EQ(json_of("digest"), before);
  const auto verified = run_on_database("verify");
  EXPECT_EQ(verified.status, 0) << verified.out;
}

TEST_F(VergerDb, EveryCommandHasHelpWithAnExample) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"info"},
                                                  {"records"},
                                                  {"digest"},
                                                  {"verify"},
                                                  {"stats"},
                                                  {"diff"},
                                                  {"scavenge"},
                                                  {"index", "rebuild"}}) {
    auto arguments = command;
    arguments.emplace_back("--help");
    const auto outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << command.front();
    EXPECT_THAT(outcome.out, HasSubstr("Example:\n  verger-db " + command.front()));
  }
}

/// Every database that a server left behind is sound.
TEST_F(VergerDb, VerifyFindsNoDamageInAnyFixture) {
  std::vector<std::string> archives{"plain/never-scavenged/database",
                                    "plain/killed-while-writing/database",
                                    "plain/killed-while-writing/recovered"};
  for (const auto& name : test::scavenge_cases()) {
    for (const auto* state : {"before", "after", "after-n1", "after-n2", "after-n3"}) {
      const auto archive = fmt::format("scavenge/{}/{}", name, state);
      if (std::filesystem::exists(test::fixtures_directory() / (archive + ".tar.zst"))) {
        archives.push_back(archive);
      }
    }
  }
  for (const auto& archive : archives) {
    std::filesystem::remove_all(database());
    unpack(archive + ".tar.zst");
    const auto outcome = run_on_database("verify");
    EXPECT_EQ(outcome.status, 0) << archive << "\n" << outcome.out << outcome.err;
  }
}

}  // namespace
}  // namespace verger
