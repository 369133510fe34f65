#include "engine/log/chunk.h"
#include "tests/support/database/lose_streams.h"
#include "tests/unit/nodeagent_operations/backup_fixture.h"

/// The files of a running node, verified by its agent.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AVerifyOperation : public BackupFixture {
 protected:
  json verify(const std::string& id, const json& parameters = json::object()) {
    return run(id, "verify", parameters);
  }
  void flip(const Path& path, std::uint64_t offset) {
    auto content = value(read_file(host_.disk(), path));
    content.at(offset) ^= std::byte{0x40};
    value(host_.disk().set_read_only(path, false));
    value(write_file_durably(host_.disk(), path, content));
  }
  bool scratch_is_empty() {
    return !value(host_.disk().exists("/agent/verify")) ||
           value(host_.disk().list("/agent/verify")).empty();
  }
};

TEST_F(AVerifyOperation, FindsNothingInSoundFilesAndCountsThem) {
  ASSERT_EQ(begin("o1", json::object(), "verify"), "202") << answer_;
  copy_some("o1");
  const auto progress = look("o1")["progress"];
  EXPECT_EQ(progress.value("phase", ""), "chunks") << progress;
  const auto status = ended("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  const auto& result = status["result"];
  EXPECT_GT(result.value("chunkFiles", 0), 3) << result;
  EXPECT_GT(result.value("tables", 0), 0);
  EXPECT_GT(result.value("entries", 0), 200);
  EXPECT_EQ(result.value("damaged", -1), 0);
  EXPECT_EQ(result.value("missingStreams", -1), 0);
  EXPECT_THAT(result["damage"], IsEmpty());
  EXPECT_TRUE(scratch_is_empty());
}

TEST_F(AVerifyOperation, NamesDamageWithFileOffsetAndRemedy) {
  flip("/db/chunk-000001.000000", log::kChunkHeaderSize);
  for (const auto& entry : value(host_.disk().list("/db/index"))) {
    if (Uuid::parse(entry.name)) {
      flip(Path("/db/index") / entry.name, 128 + 16);
      break;
    }
  }
  const auto status = verify("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  const auto& result = status["result"];
  EXPECT_GE(result.value("damaged", 0), 2) << result;
  const auto& first = result["damage"][0];
  EXPECT_EQ(first.value("file", ""), "chunk-000001.000000") << first;
  EXPECT_GE(first.value("offset", -1), 0);
  EXPECT_EQ(first.value("remedy", ""), "refill");
  bool of_index = false;
  for (const auto& each : result["damage"]) {
    of_index = of_index || each.value("remedy", "") == "index";
  }
  EXPECT_TRUE(of_index) << result;
}

TEST_F(AVerifyOperation, CountsStreamsThatTheFilterDoesNotKnow) {
  test::lose_all_streams(host_.disk(), "/db/index");
  const auto result = verify("o1")["result"];
  EXPECT_GE(result.value("missingStreams", 0), 7) << result;
  EXPECT_EQ(result["damage"][0].value("remedy", ""), "filter") << result;
}

TEST_F(AVerifyOperation, WaitsForNoScavenge) {
  scavenge_ = "5b1e0f4a";
  const auto status = verify("o1");
  EXPECT_EQ(status.value("errorCode", ""), "conflict") << status;
  EXPECT_THAT(status.value("error", ""), HasSubstr("5b1e0f4a"));
}

TEST_F(AVerifyOperation, ChunksThatAreReplacedMeanwhileAreNoDamage) {
  ASSERT_EQ(begin("o1", json::object(), "verify"), "202");
  copy_some("o1");
  value(host_.disk().rename("/db/chunk-000003.000000", "/db/chunk-000003.000001"));
  const auto status = ended("o1");
  EXPECT_EQ(status.value("errorCode", ""), "conflict") << status;
  EXPECT_THAT(status.value("error", ""), HasSubstr("replaced meanwhile"));
  EXPECT_TRUE(scratch_is_empty());
}

TEST_F(AVerifyOperation, HoldsNoReplacedChunksForLong) {
  ASSERT_EQ(begin("o1", {{"throttlePercent", 5}}, "verify"), "202") << answer_;
  copy_some("o1");
  value(host_.disk().rename("/db/chunk-000003.000000", "/db/chunk-000003.000001"));
  world_.run_for(seconds(40));
  const auto status = look("o1");
  EXPECT_EQ(status.value("errorCode", ""), "conflict") << status;
  EXPECT_TRUE(scratch_is_empty());
}

TEST_F(AVerifyOperation, IsEndedBeforeTablesThatItHoldsFillTheDisk) {
  ASSERT_EQ(begin("o1", {{"throttlePercent", 5}}, "verify"), "202") << answer_;
  copy_some("o1");
  for (const auto& entry : value(host_.disk().list("/db/index"))) {
    if (Uuid::parse(entry.name)) {
      value(host_.disk().remove(Path("/db/index") / entry.name));
    }
  }
  host_.disk().set_free_space(100);
  world_.run_for(seconds(45));
  host_.disk().set_free_space(std::nullopt);  // the agent's journal is on that disk, too
  const auto status = ended("o1");
  EXPECT_EQ(status.value("errorCode", ""), "no_space") << status;
  EXPECT_THAT(status.value("error", ""), HasSubstr("held open for the verification"));
}

TEST_F(AVerifyOperation, CanBeThrottledAndStopped) {
  ASSERT_EQ(begin("o1", {{"throttlePercent", 50}}, "verify"), "202") << answer_;
  copy_some("o1");
  EXPECT_EQ(look("o1")["throttle"].value("percent", 0), 50);
  ASSERT_EQ(ask("POST", "/agent/v1/operations/o1/cancel"), "202");
  world_.run_for(seconds(2));
  EXPECT_EQ(look("o1").value("errorCode", ""), "stopped");
  EXPECT_TRUE(scratch_is_empty());
  EXPECT_EQ(verify("o2").value("state", ""), "done");
}

TEST_F(AVerifyOperation, AnAgentThatWasKilledBeginsItAnew) {
  ASSERT_EQ(begin("o1", json::object(), "verify"), "202");
  copy_some("o1");
  open_agent();
  EXPECT_EQ(ended("o1").value("state", ""), "done") << answer_;
  EXPECT_TRUE(scratch_is_empty());
}

}  // namespace
}  // namespace verger::agent
