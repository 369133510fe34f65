#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/nodeagent_operations/agent_fixture.h"
#include "tests/unit/nodeagent_operations/digested_node.h"

/// Digests as operations: a job beside the running server.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ADigestOperation : public AgentFixture {
 protected:
  ADigestOperation() {
    host_.serve_http(2113, [](http::Request) -> net::awaitable<http::Response> {
      http::Response out;
      out.headers.set("Content-Type", "application/json");
      out.body = R"({"scavengeId":"","scavengeLink":""})";
      co_return out;
    });
    runner_ = std::make_unique<node::InlineJobRunner>(host_.timers(), Budget{}, milliseconds(100));
    open_agent();
    permit();
  }
  void open_agent() {
    AgentFixture::open_agent(
        [this]() -> node::NodeInspection* { return node_runs_ ? &node_ : nullptr; });
  }
  void permit() { ASSERT_EQ(AgentFixture::permit(1, 3'600'000), "204"); }
  std::string begin(const std::string& id, const json& parameters = {{"point", 3}},
                    const std::string& kind = "digest") {
    return operate(id, kind, parameters, 1);
  }
  /// With a controller that queries it each second.
  void pass(seconds time, const std::string& id) {
    for (auto i = seconds(0); i < time; i += seconds(1)) {
      look(id);
      world_.run_for(seconds(1));
    }
  }

  DigestScript script_;
  DigestedNode node_{script_};
  bool node_runs_ = true;
};

TEST_F(ADigestOperation, ShowsHowFarItIsAndEndsWithTheDigest) {
  ASSERT_EQ(begin("o1"), "202");
  pass(seconds(3), "o1");
  const auto running = look("o1");
  EXPECT_EQ(running.value("state", ""), "acting");
  const auto progress = running.value("progress", json::object());
  EXPECT_EQ(progress.value("phase", ""), "reading the log");
  EXPECT_EQ(progress.value("unit", ""), "bytes");
  EXPECT_GT(progress.value("done", 0), 100);
  EXPECT_EQ(progress.value("total", 0), 500);
  EXPECT_GT(progress.value("rate", 0), 3'600 * 50) << "some hundred a second";
  EXPECT_EQ(running["throttle"]["percent"], 100);
  const auto status = ended("o1");
  EXPECT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"].value("pointNumber", 0), 3) << status;
  EXPECT_EQ(status["result"]["logical"].get<std::string>().size(), 64U);
  EXPECT_EQ(script_.made, 1);
  EXPECT_EQ(look("o1"), status) << "and it stays";
  EXPECT_FALSE(status.contains("progress"));
}

TEST_F(ADigestOperation, IsCancelledBetweenTwoSteps) {
  ASSERT_EQ(begin("o1"), "202");
  pass(seconds(2), "o1");
  ASSERT_EQ(ask("POST", "/agent/v1/operations/o1/cancel"), "202");
  const auto status = ended("o1");
  EXPECT_EQ(status.value("state", ""), "failed") << "as former controllers know it";
  EXPECT_EQ(status.value("jobState", ""), "cancelled");
  EXPECT_EQ(status.value("errorCode", ""), "stopped");
  const auto steps = script_.steps;
  world_.run_for(minutes(5));
  EXPECT_EQ(script_.steps, steps);
  ASSERT_EQ(begin("o2"), "202");
  EXPECT_EQ(ended("o2").value("state", ""), "done");
  EXPECT_EQ(script_.made, 2) << "it was not kept";
}

TEST_F(ADigestOperation, ResumesWhereOneStoppedThatWasKept) {
  ASSERT_EQ(begin("o1"), "202");
  pass(seconds(3), "o1");
  ASSERT_EQ(ask("POST", "/agent/v1/operations/o1/cancel?keep=true"), "202");
  EXPECT_EQ(ended("o1").value("jobState", ""), "cancelled");
  world_.run_for(std::chrono::hours(8));
  permit();
  ASSERT_EQ(begin("o2"), "202");
  EXPECT_EQ(ended("o2").value("state", ""), "done");
  EXPECT_EQ(script_.made, 1);
  EXPECT_EQ(script_.steps, script_.needed);
}

TEST_F(ADigestOperation, IsThrottledWhileItRunsAndAfterARestartOfTheAgent) {
  script_.needed = 100'000;
  ASSERT_EQ(begin("o1"), "202");
  pass(seconds(50), "o1");
  EXPECT_GT(script_.steps, 400);
  EXPECT_EQ(ask("POST", "/agent/v1/operations/o1/throttle", {{"percent", 0}}), "400 bad_request");
  ASSERT_EQ(ask("POST", "/agent/v1/operations/o1/throttle", {{"percent", 10}}), "200");
  EXPECT_EQ(answer_["throttle"]["percent"], 10);
  auto before = script_.steps;
  pass(seconds(50), "o1");
  EXPECT_LT(script_.steps - before, 80) << "a tenth of 500, and some";
  EXPECT_GT(script_.steps - before, 20);
  open_agent();
  EXPECT_EQ(look("o1")["throttle"]["percent"], 10);
  before = script_.steps;
  pass(seconds(50), "o1");
  EXPECT_LT(script_.steps - before, 80);
  EXPECT_GT(script_.steps - before, 20);
}

TEST_F(ADigestOperation, StartsOverWithAnAgentThatWasRestartedAndIsDoneOnce) {
  ASSERT_EQ(begin("o1"), "202");
  pass(seconds(3), "o1");
  node_runs_ = false;  // its server is not seen yet
  open_agent();
  pass(seconds(2), "o1");
  EXPECT_EQ(answer_["progress"].value("phase", ""), "waiting for the server") << answer_;
  node_runs_ = true;
  const auto status = ended("o1");
  EXPECT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(script_.made, 2);
  open_agent();
  EXPECT_EQ(look("o1"), status);
  world_.run_for(minutes(1));
  EXPECT_EQ(script_.made, 2) << "never twice";
}

TEST_F(ADigestOperation, IsLeftToTheNextAgentByOneThatStops) {
  ASSERT_EQ(begin("o1"), "202");
  pass(seconds(2), "o1");
  bool stopped = false;
  host_.spawn([](Agent& agent, bool& into) -> net::awaitable<void> {
    co_await agent.stop();
    into = true;
  }(*agent_, stopped));
  ASSERT_TRUE(world_.run_until([&] { return stopped; }, milliseconds(5'000)));
  open_agent();
  EXPECT_EQ(look("o1").value("state", ""), "acting");
  EXPECT_EQ(ended("o1").value("state", ""), "done");
}

TEST_F(ADigestOperation, HoldsBackAnotherOneUnlessNoControllerQueriesIt) {
  script_.needed = 100'000;
  ASSERT_EQ(begin("o1"), "202");
  pass(seconds(2), "o1");
  ASSERT_EQ(begin("o2"), "202");
  EXPECT_EQ(ended("o2").value("errorCode", ""), "gate_closed");
  EXPECT_THAT(ended("o2").value("error", ""), HasSubstr("o1"));
  ASSERT_EQ(begin("o3", {{"threads", 1}}, "scavenge"), "202");
  EXPECT_EQ(ended("o3").value("errorCode", ""), "gate_closed");
  world_.run_for(minutes(2));
  ASSERT_EQ(begin("o4"), "202");
  EXPECT_EQ(ended("o4").value("errorCode", ""), "gate_closed");
  EXPECT_THAT(ended("o4").value("error", ""), HasSubstr("is being stopped"));
  EXPECT_EQ(ended("o1").value("jobState", ""), "cancelled");
  script_.needed = 10;
  ASSERT_EQ(begin("o5"), "202");
  EXPECT_EQ(ended("o5").value("state", ""), "done");
}

TEST_F(ADigestOperation, FailsWithTheNameOfItsErrorAndIsTriedAgainFromTheBeginning) {
  script_.fails = Error{Errc::kNoSpace, "/agent: needs room"};
  ASSERT_EQ(begin("o1"), "202");
  EXPECT_EQ(ended("o1").value("errorCode", ""), "no_space");
  EXPECT_THAT(ended("o1").value("error", ""), HasSubstr("needs room"));
  script_.fails.reset();
  ASSERT_EQ(begin("o2"), "202");
  EXPECT_EQ(ended("o2").value("state", ""), "done");
  EXPECT_EQ(script_.made, 2);
}

TEST_F(ADigestOperation, RefusesWhatCannotBeMeant) {
  EXPECT_EQ(begin("o1", {{"point", 3}, {"throttlePercent", 0}}), "400 bad_request");
  EXPECT_EQ(begin("o1", {{"point", 3}, {"bytesPerSecond", -1}}), "400 bad_request");
  EXPECT_EQ(begin("o1", {{"point", 3}, {"gently", true}}), "400 bad_request");
  ASSERT_EQ(begin("o2", {{"point", 9}}), "202");
  EXPECT_EQ(ended("o2").value("errorCode", ""), "not_found");
  ASSERT_EQ(begin("o3", json::object()), "202");
  EXPECT_EQ(ended("o3").value("errorCode", ""), "invalid_argument");
  node_runs_ = false;
  ASSERT_EQ(begin("o4"), "202");
  EXPECT_EQ(ended("o4").value("errorCode", ""), "unavailable");
  EXPECT_EQ(script_.made, 0);
}

TEST_F(ADigestOperation, KeepsLongResultsOutOfTheFacts) {
  script_.chunks = 200;
  ASSERT_EQ(begin("o1"), "202");
  EXPECT_EQ(ended("o1")["result"]["chunks"].size(), 200U);
  ASSERT_EQ(ask("GET", "/agent/v1/facts"), "200");
  ASSERT_EQ(answer_["operations"].size(), 1U);
  EXPECT_EQ(answer_["operations"][0]["result"], json::object());
  EXPECT_EQ(answer_["operations"][0]["state"], "done");
}

}  // namespace
}  // namespace verger::agent
