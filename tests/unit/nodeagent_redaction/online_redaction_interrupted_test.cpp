// Connections that are lost, servers and agents that are killed, and requests to stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/nodeagent_redaction/online_redaction_fixture.h"

namespace verger::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(AnOnlineRedaction, FindsOutWhatBecameOfASwitchWhoseAnswerWasLost) {
  server_.loses_connection = 1;
  const auto status = redact(both());
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["blanked"], 2);
  EXPECT_EQ(status["result"]["proven"], true) << "the texts are known all the while";
  EXPECT_EQ(server_.locks, 2);
  EXPECT_EQ(server_.switches, 2) << "none is made twice";
}

TEST_F(AnOnlineRedaction, EndsWhereTheConnectionIsLostAgainAndAgain) {
  // Each switch is answered by the end of the connection: two chunks, and then nothing is left.
  server_.loses_connection = 5;
  const auto status = redact(both());
  EXPECT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(server_.switches, 2);
}

TEST_F(AnOnlineRedaction, ProvesAlsoWhereTheServerWasKilledInTheMiddleAndCameBack) {
  server_.loses_connection = 1;
  server_.away_for = 12;  // some minutes
  const auto status = redact(both());
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(server_.away_for, 0);
  EXPECT_EQ(status["result"]["blanked"], 2);
  EXPECT_EQ(status["result"]["texts"], 2) << "the texts are known all the while";
  EXPECT_EQ(status["result"]["proven"], true) << status;
  const auto& chunks = status["result"]["chunks"];
  ASSERT_EQ(chunks.size(), 2U) << "the one whose answer was lost is in the report, too: " << status;
  EXPECT_EQ(chunks[0]["from"], "chunk-000000.000000");
  EXPECT_EQ(chunks[0]["to"], "chunk-000000.000001");
  EXPECT_EQ(chunks[0]["records"], 1);
  EXPECT_NE(chunks[0]["md5Before"], chunks[0]["md5After"]);
  EXPECT_EQ(server_.switches, 2) << "none is made twice";
}

TEST_F(AnOnlineRedaction, ReportsNoSwitchThatWasNotMade) {
  server_.loses_requests = 1;
  server_.loses_connection = 1;
  const auto status = redact(both());
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["blanked"], 2);
  const auto& chunks = status["result"]["chunks"];
  ASSERT_EQ(chunks.size(), 2U) << status;
  EXPECT_EQ(chunks[0]["from"], "chunk-000000.000001") << "as the scavenge has left it";
  EXPECT_EQ(chunks[0]["to"], "chunk-000000.000002");
  EXPECT_EQ(chunks[1]["from"], "chunk-000001.000000");
}

TEST_F(AnOnlineRedaction, EndsWhereTheServerDoesNotComeBack) {
  server_.loses_connection = 1;
  server_.away_for = 1'000'000;
  EXPECT_EQ(operate("o1", "online_redaction", {{"list", both()}}, 1), "202") << answer_;
  world_.run_for(milliseconds(400'000));
  EXPECT_THAT(look("o1").dump(), HasSubstr("waiting for the server"));
  const auto status = ended("o1");
  EXPECT_EQ(status.value("state", ""), "failed") << status;
  EXPECT_THAT(status.value("error", ""), HasSubstr("no process listens there"));
  EXPECT_EQ(server_.switches, 1);
}

class AnOnlineRedactionIsStopped : public AnOnlineRedaction,
                                   public ::testing::WithParamInterface<bool> {};

TEST_P(AnOnlineRedactionIsStopped, BetweenTwoChunkFiles) {
  const bool keep = GetParam();  // for an attempt of the same run
  runner_ = std::make_unique<node::InlineJobRunner>(host_.timers(), Budget{.units = 1},
                                                    milliseconds(100));
  open_agent([this] { return &node_; });
  ASSERT_EQ(permit(1, 86'400'000), "204");
  EXPECT_EQ(operate("o1", "online_redaction", {{"list", both()}}, 1), "202") << answer_;
  for (int looks = 0; looks < 1'000 && server_.switches < 1; ++looks) {
    world_.run_for(milliseconds(5));
  }
  ASSERT_EQ(server_.switches, 1);
  EXPECT_THAT(noted_files(), SizeIs(1));
  EXPECT_EQ(ask("POST", keep ? "/agent/v1/operations/o1/cancel?keep=true"
                             : "/agent/v1/operations/o1/cancel"),
            "202");
  const auto status = ended("o1");
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_EQ(status.value("errorCode", ""), "stopped");
  EXPECT_EQ(server_.switches, 1);
  EXPECT_THAT(files_with(kAda), IsEmpty());
  EXPECT_EQ(files_with(kErika).size(), 1U);
  EXPECT_FALSE(server_.locked);
  EXPECT_THAT(noted_files(), SizeIs(keep ? 1 : 0));
}

INSTANTIATE_TEST_SUITE_P(ForGoodOrForAWhile, AnOnlineRedactionIsStopped, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "ForAWhile" : "ForGood"; });

TEST_F(AnOnlineRedaction, RemovesTheCopyThatAnInterruptedOneLeft) {
  value(write_file_durably(host_.disk(), "/db/0f.redact.tmp", as_bytes(kAda)));
  const auto status = redact(both());
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["removed"], json::array({"0f.redact.tmp"}));
  EXPECT_EQ(status["result"]["proven"], true) << status;
}

class AnOnlineRedactionDies : public AnOnlineRedaction,
                              public ::testing::WithParamInterface<const char*> {};

TEST_P(AnOnlineRedactionDies, AndTheNextAgentEndsIt) {
  const auto list = both();
  server_.lock_busy_for = 1;  // it waits a second before it does anything
  EXPECT_EQ(operate("o1", "online_redaction", {{"list", list}}, 1), "202") << answer_;
  die_at(GetParam());
  world_.run_for(milliseconds(60'000));
  ASSERT_THAT(passed_points, ::testing::Contains(std::string(GetParam()))) << "it was never there";
  come_back();
  const auto status = ended("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  const auto& result = status["result"];
  EXPECT_EQ(result["records"], 2);
  EXPECT_EQ(result["blanked"], 2) << "also those that the former agent has blanked: " << result;
  EXPECT_EQ(result["already"], 0) << result;
  EXPECT_EQ(result["texts"], 2) << result;
  EXPECT_EQ(result["chunks"].size(), 2U) << result;
  EXPECT_EQ(result["proven"], true)
      << "what the former agent had noted was searched for: " << result;
  EXPECT_THAT(noted_files(), IsEmpty()) << "the digests go with the end of the operation";
  EXPECT_THAT(files_with(kAda), IsEmpty());
  EXPECT_THAT(files_with(kErika), IsEmpty());
  EXPECT_EQ(both(), list);
  EXPECT_FALSE(server_.locked);
}

INSTANTIATE_TEST_SUITE_P(AtEachStep, AnOnlineRedactionDies,
                         ::testing::Values("online-redaction.locked", "online-redaction.copied",
                                           "online-redaction.switched",
                                           "agent.online-redaction.noted",
                                           "agent.online-redaction.searched"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::erase_if(name, [](char c) { return c == '.' || c == '-'; });
                           return name;
                         });

}  // namespace
}  // namespace verger::agent
