#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/digest.h"
#include "tests/e2e/daemons/external_agent.h"

/// Jobs and files of a real agent process.
namespace verger::test {
namespace {

class AgentJobs : public ExternalAgent {
 protected:
  /// A point in the log, up to which there are digests.
  int make_point() {
    facts_when(complete);
    const auto ended = operate("op-1", "scavenge", {{"threads", 1}});
    EXPECT_EQ(ended.value("state", ""), "done") << ended.dump(1);
    const auto number = ended["result"]["point"].value("number", -1);
    facts_when([number](const json& now) {
      return !now.at("points").empty() && now.at("points").back().at("number") == number;
    });
    return number;
  }
  static bool works(const json& status) {
    return status.contains("progress") && status["progress"].value("bytes", 0) > 0;
  }
  void kill_agent_and_start_it() {
    agent_->kill();
    EXPECT_EQ(agent_->wait(seconds(10)), 128 + SIGKILL);
    start_agent();
    facts_when(complete);
  }
  http::Response throttle(const std::string& id, const json& how) {
    return post(fmt::format("/agent/v1/operations/{}/throttle", id), how);
  }
};

TEST_F(AgentJobs, ADigestIsThrottledWhileItRunsAndSurvivesAKillOfItsAgent) {
  const auto point = make_point();
  begin("d-1", "digest", {{"point", point}, {"bytesPerSecond", 2'000}});
  const auto slow = status_when("d-1", works);
  EXPECT_EQ(slow["state"], "acting");
  EXPECT_EQ(slow["throttle"]["bytesPerSecond"], 2'000);
  EXPECT_EQ(slow["progress"]["unit"], "bytes");
  EXPECT_LT(slow["progress"]["done"], slow["progress"]["total"]);
  ASSERT_EQ(throttle("d-1", {{"bytesPerSecond", 3'000}}).status, 200);
  kill_agent_and_start_it();
  const auto resumed = status_when("d-1", works);
  EXPECT_EQ(resumed["state"], "acting");
  EXPECT_EQ(resumed["throttle"]["bytesPerSecond"], 3'000) << "it outlives the agent";
  ASSERT_EQ(throttle("d-1", json::object()).status, 200);
  const auto ended = status_when("d-1", has_ended);
  ASSERT_EQ(ended["state"], "done") << ended.dump(1);
  EXPECT_EQ(ended["result"]["logical"].get<std::string>().size(), 64U);
  kill_agent_and_start_it();
  EXPECT_EQ(status_of("d-1"), ended);
  EXPECT_EQ(operate("d-2", "digest", {{"point", point}})["result"], ended["result"]);
}

TEST_F(AgentJobs, ADigestIsCancelledAtOnce) {
  const auto point = make_point();
  begin("d-1", "digest", {{"point", point}, {"bytesPerSecond", 2'000}});
  status_when("d-1", works);
  ASSERT_EQ(post("/agent/v1/operations/d-1/cancel", json::object()).status, 202);
  const auto ended = status_when("d-1", has_ended);
  EXPECT_EQ(ended.value("jobState", ""), "cancelled") << ended.dump(1);
  EXPECT_EQ(ended.value("errorCode", ""), "stopped");
  kill_agent_and_start_it();
  EXPECT_EQ(status_of("d-1"), ended);
}

TEST_F(AgentJobs, FilesAreKeptForTheirOwnerOverAKill) {
  facts_when(complete);
  const std::string content = "-----BEGIN PRIVATE KEY----- zebra";
  const auto target = "/agent/v1/files/" + to_hex(sha256(as_bytes(content)));
  EXPECT_EQ(ask("PUT", target + "?controllerEpoch=1", content + "!").status, 400);
  EXPECT_EQ(ask("PUT", target + "?controllerEpoch=1", std::string(2U << 20U, 'x')).status, 400);
  ASSERT_EQ(ask("PUT", target + "?controllerEpoch=1", content).status, 200);
  kill_agent_and_start_it();
  const auto found = ask("GET", target);
  EXPECT_EQ(found.status, 200);
  EXPECT_FALSE(found.body.contains("zebra"));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("agent/files"))) {
    EXPECT_TRUE(check_private_file(entry.path())) << entry.path();
    EXPECT_EQ(file_text(entry.path().string()), content);
    ++files;
  }
  EXPECT_EQ(files, 1);
  EXPECT_FALSE(file_text(path("agent.log")).contains("zebra"));
  EXPECT_EQ(ask("DELETE", target + "?controllerEpoch=1").status, 204);
  EXPECT_EQ(ask("GET", target).status, 404);
}

}  // namespace
}  // namespace verger::test
