#include "tests/unit/nodeagent_operations/backup_fixture.h"

/// A running node's database copied into a repository of its agent.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using ABackupOperation = BackupFixture;

TEST_F(ABackupOperation, ShowsHowFarItIsAndEndsWithTheGeneration) {
  ASSERT_EQ(begin("o1", {{"digests", "readable"}, {"throttlePercent", 100}}), "202");
  copy_some("o1");
  const auto progress = look("o1")["progress"];
  EXPECT_THAT(progress.value("phase", ""), HasSubstr("copying the index")) << progress;
  EXPECT_EQ(progress.value("unit", ""), "bytes");
  EXPECT_GT(progress.value("done", 0), 0);
  const auto status = ended("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  const auto& result = status["result"];
  EXPECT_EQ(result.value("node", ""), "n1");
  EXPECT_EQ(result.value("cluster", ""), "orders");
  EXPECT_EQ(result.value("host", ""), "db1");
  EXPECT_EQ(result.value("serverVersion", ""), "24.10.0");
  EXPECT_EQ(result.value("state", ""), "live");
  EXPECT_GT(result.value("endPosition", 0), 16 * 1024);
  EXPECT_EQ(result.value("logicalDigest", "").size(), 64U);
  EXPECT_EQ(result.value("readableDigest", "").size(), 64U);
  EXPECT_FALSE(result.contains("parent")) << "a first one is full";
  EXPECT_THAT(generations(), ::testing::ElementsAre(result)) << "as it is listed";
  EXPECT_EQ(value(repository().load("latest")).id, result.value("id", ""));
}

TEST_F(ABackupOperation, ReadsOnlyWhatIsNewAfterTheFirst) {
  const auto first = back_up("o1")["result"];
  world_.run_for(seconds(60));
  const auto second = back_up("o2")["result"];
  EXPECT_EQ(second.value("parent", ""), first.value("id", "-"));
  EXPECT_GT(second.value("reusedBytes", 0), second.value("storedBytes", 0) / 2) << second;
  const auto full = back_up("o3", {{"full", true}})["result"];
  EXPECT_FALSE(full.contains("parent"));
  EXPECT_THAT(generations(), SizeIs(3));
}

TEST_F(ABackupOperation, ReadsEverythingAgainOnceTheNodeHasAnotherLog) {
  const auto elect = [this](const Path& directory, const test::BuilderOptions& options) {
    test::DatabaseBuilder builder(host_.disk(), directory, options);
    auto& log = builder.database().transaction_log();
    value(log.append_epoch(EpochNumber(0), builder.random().uuid()));
    value(builder.database().commit_up_to(log.end()));
  };
  elect("/db", {});
  const auto first = back_up("o1")["result"];
  // As after a restore: longer than the backup, so that its end alone shows nothing.
  elect("/db2", {.seed = 2});
  fill("/db2", {.seed = 2}, 400);
  CopiedNode restored("/db2");
  AgentFixture::open_agent([&restored] { return &restored; });
  permit();
  const auto second = back_up("o2");
  ASSERT_EQ(second.value("state", ""), "done") << second;
  const auto& result = second["result"];
  EXPECT_GT(result.value("endPosition", 0), first.value("endPosition", 0));
  EXPECT_FALSE(result.contains("parent")) << result;
  world_.run_for(seconds(60));
  EXPECT_EQ(back_up("o3")["result"].value("parent", ""), result.value("id", "-"));
  agent_ = nullptr;  // before its node
}

TEST_F(ABackupOperation, IsRefusedWhileAScavengeRuns) {
  scavenge_ = "5b1e0f4a";
  const auto status = back_up("o1");
  EXPECT_EQ(status.value("errorCode", ""), "conflict");
  EXPECT_THAT(status.value("error", ""), HasSubstr("scavenge 5b1e0f4a runs on this node"));
  EXPECT_FALSE(*host_.disk().exists("/backup/repository")) << "nothing was begun";
}

TEST_F(ABackupOperation, IsNoneWhenAScavengeBeginsDuringTheCopyAndTheNextResumesIt) {
  ASSERT_EQ(begin("o1"), "202");
  copy_some("o1");
  scavenge_ = "5b1e0f4a";
  const auto status = ended("o1");
  EXPECT_EQ(status.value("errorCode", ""), "conflict");
  EXPECT_THAT(status.value("error", ""),
              AllOf(HasSubstr("nothing was recorded as a backup"), HasSubstr("scavenge 5b1e0f4a")));
  EXPECT_THAT(generations(), IsEmpty());
  scavenge_ = "";
  const auto next = back_up("o2")["result"];
  EXPECT_GT(next.value("reusedBytes", 0), next.value("storedBytes", 0) / 2) << next;
  EXPECT_FALSE(next.contains("parent"));
}

TEST_F(ABackupOperation, IsNoneWhenAScavengeBeganAndEndedDuringTheCopy) {
  ASSERT_EQ(begin("o1"), "202");
  copy_some("o1");
  node_.finished = api::ScavengePoint{.number = 4, .position = 10};
  const auto status = ended("o1");
  EXPECT_EQ(status.value("errorCode", ""), "conflict");
  EXPECT_THAT(status.value("error", ""), HasSubstr("a scavenge ran during the copy"));
  EXPECT_THAT(generations(), IsEmpty());
}

TEST_F(ABackupOperation, PassesOnWhyTheFilesCannotBeCopied) {
  value(write_file_durably(host_.disk(), "/db/kurrent.ddb", as_bytes(std::string_view("x"))));
  auto status = back_up("o1");
  EXPECT_EQ(status.value("errorCode", ""), "refused");
  EXPECT_THAT(status.value("error", ""), AllOf(HasSubstr("/db/kurrent.ddb"), HasSubstr("stop")));
  value(host_.disk().remove("/db/kurrent.ddb"));
  value(write_file_durably(host_.disk(), "/db/redaction.tmp", as_bytes(std::string_view("x"))));
  status = back_up("o2");
  EXPECT_EQ(status.value("errorCode", ""), "refused") << status;
  EXPECT_THAT(generations(), IsEmpty());
}

TEST_F(ABackupOperation, IsRefusedWhereTheRepositoryIsInTheDatabase) {
  value(host_.disk().make_directories("/db/backup"));
  describe("nightly", R"({"location":"/db/backup"})");
  const auto refused = back_up("o1");
  EXPECT_EQ(refused.value("state", ""), "failed") << refused;
  EXPECT_THAT(refused.value("error", ""), HasSubstr("is in the database's directory /db"));
}

TEST_F(ABackupOperation, TakesTheStateOfAKilledScavengeForWhatItIs) {
  value(host_.disk().make_directories("/db/index/scavenging"));
  value(write_file_durably(host_.disk(), "/db/index/scavenging/scavenging.db-wal",
                           as_bytes(std::string_view("x"))));
  EXPECT_EQ(back_up("o1").value("state", ""), "done") << answer_;
}

TEST_F(ABackupOperation, IsCancelledWithinASecondAndTheNextResumesIt) {
  ASSERT_EQ(begin("o1"), "202");
  copy_some("o1");
  ASSERT_EQ(ask("POST", "/agent/v1/operations/o1/cancel"), "202");
  world_.run_for(seconds(1));
  const auto status = look("o1");
  EXPECT_EQ(status.value("jobState", ""), "cancelled") << status;
  EXPECT_EQ(status.value("errorCode", ""), "stopped");
  EXPECT_THAT(generations(), IsEmpty());
  const auto next = back_up("o2")["result"];
  EXPECT_GT(next.value("reusedBytes", 0), 0) << next;
}

TEST_F(ABackupOperation, IsResumedByAnAgentThatWasRestarted) {
  ASSERT_EQ(begin("o1"), "202");
  copy_some("o1");
  node_runs_ = false;  // its server is not seen yet
  open_agent();
  world_.run_for(seconds(2));
  EXPECT_EQ(look("o1")["progress"].value("phase", ""), "waiting for the server") << answer_;
  node_runs_ = true;
  const auto status = ended("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_GT(status["result"].value("reusedBytes", 0), 0) << "what the first life stored";
  EXPECT_EQ(status["result"].value("serverVersion", ""), "24.10.0");
  EXPECT_THAT(generations(), SizeIs(1));
  open_agent();
  world_.run_for(seconds(60));
  EXPECT_THAT(generations(), SizeIs(1)) << "never twice";
}

TEST_F(ABackupOperation, IsThrottledWhileItRuns) {
  ASSERT_EQ(begin("o1", {{"bytesPerSecond", 2'000}}), "202");
  world_.run_for(seconds(20));
  const auto slow = look("o1")["progress"].value("bytes", 0);
  world_.run_for(seconds(20));
  const auto later = look("o1");
  EXPECT_EQ(later.value("state", ""), "acting") << later;
  EXPECT_LT(later["progress"].value("bytes", 0) - slow, 2 * 20 * 2'000);
  EXPECT_EQ(later["throttle"].value("bytesPerSecond", 0), 2'000);
  ASSERT_EQ(ask("POST", "/agent/v1/operations/o1/throttle", {{"percent", 100}}), "200");
  world_.run_for(seconds(10));
  EXPECT_EQ(look("o1").value("state", ""), "done") << answer_;
}

TEST_F(ABackupOperation, RefusesAnotherRepositoryThanTheExpectedOne) {
  auto status = back_up("o1", {{"repositoryId", "5b1e0f4a-90b1-4a37-8ad1-2d7c1f0d6a11"}});
  EXPECT_EQ(status.value("errorCode", ""), "refused");
  EXPECT_THAT(status.value("error", ""), HasSubstr("nothing is stored in /backup"));
  EXPECT_FALSE(*host_.disk().exists("/backup/repository")) << "it was not made";
  ASSERT_EQ(back_up("o2").value("state", ""), "done");
  status = back_up("o3", {{"repositoryId", "5b1e0f4a-90b1-4a37-8ad1-2d7c1f0d6a11"}});
  EXPECT_EQ(status.value("errorCode", ""), "refused");
  EXPECT_THAT(status.value("error", ""), HasSubstr("5b1e0f4a-90b1-4a37-8ad1-2d7c1f0d6a11"));
  ASSERT_EQ(ask("GET", "/agent/v1/backups/repositories"), "200");
  const auto id = answer_["repositories"][1].value("id", "");
  EXPECT_EQ(back_up("o4", {{"repositoryId", id}}).value("state", ""), "done") << answer_;
}

TEST_F(ABackupOperation, SaysThatTheRepositoryIsNotThere) {
  const auto status = back_up("o1", {{"repository", "gone"}});
  EXPECT_EQ(status.value("errorCode", ""), "unavailable");
  EXPECT_THAT(status.value("error", ""),
              AllOf(HasSubstr("\"gone\""), HasSubstr("/mnt/gone is not there: mount")));
  EXPECT_FALSE(*host_.disk().exists("/mnt/gone")) << "a mount point must not become a repository";
  EXPECT_THAT(back_up("o2", {{"repository", "unknown"}}).value("error", ""),
              HasSubstr("no repository \"unknown\""));
}

TEST_F(ABackupOperation, RefusesWhatCannotBeMeant) {
  EXPECT_EQ(begin("o1", {{"gently", true}}), "400 bad_request");
  EXPECT_EQ(begin("o1", {{"serviceDeadlineMs", 1}}), "400 bad_request") << "of offline_backup";
  EXPECT_EQ(back_up("o2", {{"node", ""}}).value("errorCode", ""), "invalid_argument");
  EXPECT_EQ(back_up("o3", {{"threads", 9}}).value("errorCode", ""), "invalid_argument");
  EXPECT_EQ(back_up("o4", {{"digests", "all"}}).value("errorCode", ""), "invalid_argument");
  EXPECT_EQ(back_up("o5", {{"repository", "../x"}}).value("errorCode", ""), "invalid_argument");
  node_runs_ = false;
  EXPECT_EQ(back_up("o6").value("errorCode", ""), "unavailable");
}

TEST_F(ABackupOperation, IsRefusedByAnAgentWithoutRepositories) {
  backups_ = nullptr;
  open_agent();
  permit();
  EXPECT_THAT(back_up("o1").value("error", ""), HasSubstr("--backup-repositories"));
  EXPECT_THAT(run("o2", "backup_retain", {{"repository", "nightly"}}).value("error", ""),
              HasSubstr("--backup-repositories"));
  EXPECT_EQ(ask("GET", "/agent/v1/backups/repositories"), "200");
  EXPECT_THAT(answer_["repositories"], IsEmpty());
  EXPECT_EQ(ask("GET", "/agent/v1/backups?repository=nightly"), "404 not_found");
}

TEST_F(ABackupOperation, SharesItsRepositoryWithAnotherAgentAtTheSameTime) {
  fill("/db2", {.seed = 2}, 90);
  CopiedNode other_node("/db2");
  auto opened = Agent::open({.journal = "/agent2/journal.db",
                             .node = {.tls = false, .host = "n1", .port = 2113},
                             .poll_interval = milliseconds(100)},
                            {.executor = host_.executor(),
                             .files = host_.disk(),
                             .clock = host_.clock(),
                             .timers = host_.timers(),
                             .client = host_.client(),
                             .jobs = *runner_,
                             .log = null_log(),
                             .inspection = [&other_node] { return &other_node; },
                             .backups = backups_});
  ASSERT_TRUE(opened) << opened.error().message;
  auto other = *std::move(opened);
  other->start();
  ASSERT_EQ(begin("o1"), "202");
  copy_some("o1");
  std::swap(agent_, other);
  permit();
  ASSERT_EQ(begin("o2", {{"node", "n2"}}), "202");
  copy_some("o2");
  std::swap(agent_, other);
  EXPECT_EQ(look("o1").value("state", ""), "acting") << "both are at it";
  const auto first = ended("o1");
  std::swap(agent_, other);
  const auto second = ended("o2");
  EXPECT_EQ(first.value("state", ""), "done") << first;
  EXPECT_EQ(second.value("state", ""), "done") << second;
  EXPECT_THAT(generations(), SizeIs(2));
  EXPECT_EQ(ask("GET", "/agent/v1/backups?repository=nightly&node=n2"), "200");
  EXPECT_THAT(answer_["generations"], ::testing::ElementsAre(second["result"]));
  other = nullptr;
  agent_ = nullptr;  // before its node
}

}  // namespace
}  // namespace verger::agent
