#include "tests/e2e/daemons/external_agent.h"

#include <gmock/gmock.h>

namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

TEST_F(ExternalAgent, WithoutTlsAClientWithoutATokenIsRefusedEverything) {
  facts_when(complete);
  for (const auto& [method, target] :
       {std::pair("GET", "/agent/v1/facts"), std::pair("POST", "/agent/v1/permits"),
        std::pair("POST", "/agent/v1/operations"), std::pair("GET", "/agent/v1/digest?point=0")}) {
    const auto nobody =
        caller_.ask(agent_url(), {.method = method, .target = target, .body = "{}"}, false);
    ASSERT_TRUE(nobody.has_value());
    EXPECT_EQ(nobody->status, 401) << method << ' ' << target;
    const auto wrong = caller_.ask(agent_url(),
                                   {.method = method,
                                    .target = target,
                                    .headers = {{"Authorization", "Bearer guessed"}},
                                    .body = "{}"},
                                   false);
    ASSERT_TRUE(wrong.has_value());
    EXPECT_EQ(wrong->status, 401);
  }
}

TEST_F(ExternalAgent, TellsWhatRoutesAndFilesShow) {
  const auto seen = facts_when(complete);
  EXPECT_EQ(seen.at("external"), true);
  EXPECT_EQ(seen.at("nodeVersion"), "24.6.0");
  EXPECT_GT(seen.at("chunkFileCount"), 1);
  EXPECT_GT(seen.at("databaseBytes"), 0);
  EXPECT_GT(seen.at("diskFreeBytes"), 0);
  EXPECT_GT(seen.at("chunkSize"), 0);
  const auto with_certificates =
      facts_when([](const json& now) { return now.at("certificates").contains("served"); });
  EXPECT_EQ(with_certificates.at("certificates").at("onDisk").at("serial"), serial_);
  EXPECT_EQ(with_certificates.at("certificates").at("served").at("serial"), serial_);
}

TEST_F(ExternalAgent, ScavengesByIdAndSeesThePoint) {
  facts_when(complete);
  const auto ended = operate("op-1", "scavenge", {{"threads", 1}});
  ASSERT_EQ(ended.at("state"), "done") << ended.dump(1) << file_text(path("agent.log"));
  const auto& result = ended.at("result");
  EXPECT_TRUE(result.at("point").is_object()) << ended.dump(1);
  EXPECT_LT(result.at("bytesAfter"), result.at("bytesBefore"));
  const auto number = result.at("point").at("number").get<int>();
  const auto seen = facts_when([&](const json& now) {
    return now.contains("lastFinishedPoint") && !now.at("points").empty() &&
           now.at("points").back().at("number") == number;
  });
  EXPECT_EQ(seen.at("lastFinishedPoint").at("number"), number);
  // The digest is computed from the files that the server has open.
  std::string digest;
  EXPECT_TRUE(eventually(seconds(20), [&] {
    const auto answer = caller_.ask(agent_url(),
                                    {.target = fmt::format("/agent/v1/digest?point={}", number),
                                     .headers = {{"Authorization", bearer()}}},
                                    false);
    digest = answer && answer->status == 200 ? answer->body : "";
    return !digest.empty();
  }));
  EXPECT_EQ(json::parse(digest).at("logical").get<std::string>().size(), 64U);
  // The same id acts once.
  const auto again = post("/agent/v1/operations", {{"id", "op-1"},
                                                   {"kind", "scavenge"},
                                                   {"controllerEpoch", 1},
                                                   {"run", "r"},
                                                   {"step", "op-1"},
                                                   {"parameters", {{"threads", 1}}}});
  EXPECT_EQ(again.status, 200);
}

TEST_F(ExternalAgent, ReloadsAndProvesTheNewCertificate) {
  facts_when(complete);
  const auto renewed = renew();
  const auto ended = operate("op-2", "reload", json::object());
  ASSERT_EQ(ended.at("state"), "done") << ended.dump(1) << file_text(path("server.log"));
  EXPECT_EQ(ended.at("result").at("serial"), renewed);
  EXPECT_EQ(ended.at("result").at("serialBefore"), serial_);
  EXPECT_EQ(caller_.served_serial(node_url()), renewed);
}

TEST_F(ExternalAgent, ScavengesTheFilesOfAStoppedServer) {
  const auto point = leave_a_point_unfinished();
  const auto before = facts();
  EXPECT_EQ(operate("op-3", "offline_scavenge", {{"point", point}}).value("errorCode", ""),
            "unsupported")
      << "the agent has no command for it";
  make_a_service_of_the_server();
  const auto again =
      facts_when([](const json& now) { return complete(now) && !now.at("points").empty(); });
  EXPECT_EQ(again.value("startCommand", ""), "/bin/sh " + path("start.sh"));
  const auto ended = operate("op-4", "offline_scavenge", {{"point", point}, {"threads", 2}});
  EXPECT_EQ(ended.at("state"), "done")
      << ended.dump(1) << file_text(path("agent.log")) << file_text(path("server.log"));
  if (ended.at("state") == "done") {
    EXPECT_EQ(ended.at("result").at("point").at("number"), point);
    EXPECT_LT(ended.at("result").at("bytesAfter"), ended.at("result").at("bytesBefore"));
  }
  const auto after = facts_when([&](const json& now) {
    return complete(now) && now.contains("lastFinishedPoint") &&
           now.at("nodeInstanceId") != before.at("nodeInstanceId");
  });
  EXPECT_EQ(after.at("lastFinishedPoint").at("number"), point);
  EXPECT_EQ(run({"/bin/sh", path("stop.sh")}).status, 0);
}

TEST_F(ExternalAgent, StartsAServerAgainThatEndedToCutItsLogAndNoOther) {
  facts_when(complete);
  agent_->signal(SIGTERM);
  EXPECT_EQ(agent_->wait(seconds(10)), 0);
  server_->signal(SIGTERM);
  EXPECT_EQ(server_->wait(seconds(10)), 0);
  // The start after the cut ends once more, as a server's does; here it is killed there.
  write_commands("VERGER_FAILPOINT=node.truncated-at-open VERGER_FAILPOINT_LOG='" +
                 path("reached") + "' ");
  ASSERT_EQ(run({"/bin/sh", path("start.sh")}).status, 0);
  start_agent(service_commands());
  const auto before = facts_when(complete);
  std::filesystem::copy_file(path("db") + "/chaser.chk", path("db") + "/truncate.chk",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(run({"/bin/sh", "-c", "kill -9 $(cat " + path("server.pid") + ")"}).status, 0);
  const auto after = facts_when([&](const json& now) {
    return complete(now) && now.at("nodeInstanceId") != before.at("nodeInstanceId");
  });
  EXPECT_NE(file_text(path("reached")).find("node.truncated-at-open"), std::string::npos);
  EXPECT_NE(file_text(path("agent.log")).find("ended in order to cut its log"), std::string::npos);
  // An operator stops it, and then prepares a restore: the agent does not interfere.
  EXPECT_EQ(run({"/bin/sh", path("stop.sh")}).status, 0);
  ASSERT_TRUE(eventually(seconds(10), [&] {
    return file_text(path("agent.log")).find("did not end in order to cut its log") !=
           std::string::npos;
  }));
  std::filesystem::copy_file(path("db") + "/chaser.chk", path("db") + "/truncate.chk",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_FALSE(eventually(seconds(1), [&] { return facts().value("nodeRunning", false); }));
}

TEST_F(ExternalAgent, OutlivesTheServerAndKnowsItAgain) {
  const auto before = facts_when(complete);
  server_->kill();
  const auto down = facts_when([](const json& now) { return !now.value("nodeRunning", true); });
  EXPECT_THAT(down.at("nodeProblem").get<std::string>(), ::testing::HasSubstr(node_url()));
  EXPECT_EQ(down.at("chunkFileCount"), before.at("chunkFileCount"));
  EXPECT_EQ(down.at("databaseId"), before.at("databaseId"));
  start_server();
  const auto after = facts_when(complete);
  EXPECT_NE(after.at("nodeInstanceId"), before.at("nodeInstanceId"));
  EXPECT_EQ(after.at("databaseId"), before.at("databaseId"));
}

}  // namespace
}  // namespace verger::test
