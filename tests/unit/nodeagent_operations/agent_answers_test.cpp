#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/digest.h"
#include "nodeagent/operations/answers.h"
#include "tests/unit/nodeagent_operations/agent_fixture.h"

/// The status and the code of each refusal, as docs/formats/agent-interface.md has them.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

class AgentAnswers : public AgentFixture {
 protected:
  AgentAnswers() {
    host_.serve_http(2113, [this](http::Request request) -> net::awaitable<http::Response> {
      posts_ += request.method == "POST" ? 1 : 0;
      http::Response out{.status = request.target.starts_with("/streams/") ? history_status_ : 200};
      out.headers.set("Content-Type", "application/json");
      out.body = request.target.starts_with("/streams/") ? R"({"entries":[]})"
                                                         : R"({"scavengeId":"","scavengeLink":""})";
      if (request.method == "GET" && look_takes_ > milliseconds(0)) {
        co_await host_.timers().sleep_for(look_takes_);
      }
      co_return out;
    });
    open_agent([]() -> node::NodeInspection* { return nullptr; });
  }
  std::string operate(const std::string& id, const std::string& kind, const json& parameters,
                      std::int64_t epoch = 4) {
    return AgentFixture::operate(id, kind, parameters, epoch);
  }

  int posts_ = 0;
  int history_status_ = 200;
  milliseconds look_takes_{0};  ///< of the node, for each question
};

TEST_F(AgentAnswers, RefuseAnOlderControllerAndOneWithoutAPermit) {
  EXPECT_EQ(permit(4), "204");
  EXPECT_EQ(permit(3), "409 refused");
  EXPECT_EQ(operate("o1", "resign", json::object(), 3), "409 refused");
  EXPECT_EQ(operate("o1", "resign", json::object(), 5), "409 refused");
}

TEST_F(AgentAnswers, ANewerControllerEndsWhatHasNotActedYet) {
  ASSERT_EQ(permit(4), "204");
  look_takes_ = milliseconds(10'000);
  ASSERT_EQ(operate("o1", "scavenge", {{"threads", 1}}), "202");
  world_.run_for(milliseconds(100));
  ASSERT_EQ(permit(5), "204");
  EXPECT_EQ(ask("GET", "/agent/v1/operations/o1"), "200");
  EXPECT_EQ(answer_.value("state", ""), "failed") << "at once, not when its look has ended";
  EXPECT_EQ(answer_.value("errorCode", ""), "refused");
  world_.run_for(milliseconds(60'000));
  EXPECT_EQ(posts_, 0);
}

TEST_F(AgentAnswers, APermitThatRunsOutDuringTheLookIsNone) {
  ASSERT_EQ(permit(4, 5'000), "204");
  look_takes_ = milliseconds(4'000);
  ASSERT_EQ(operate("o1", "scavenge", {{"threads", 1}}), "202");
  EXPECT_EQ(ended("o1").value("errorCode", ""), "refused") << answer_;
  EXPECT_NE(answer_.value("error", "").find("run out"), std::string::npos) << answer_;
  EXPECT_EQ(posts_, 0);
}

TEST_F(AgentAnswers, NameWhatIsWrongWithARequest) {
  ASSERT_EQ(permit(4), "204");
  EXPECT_EQ(operate("o1", "polish", json::object()), "400 bad_request");
  EXPECT_EQ(ask("POST", "/agent/v1/permits", {{"run", "r"}}), "400 bad_request");
  EXPECT_EQ(ask("GET", "/agent/v1/digest?point=x"), "400 bad_request");
  EXPECT_EQ(ask("GET", "/agent/v1/digest?point=1"), "503 unavailable");
  EXPECT_EQ(ask("GET", "/agent/v1/operations/none"), "404 not_found");
  EXPECT_EQ(ask("POST", "/agent/v1/operations/none/cancel"), "404 not_found");
  EXPECT_EQ(ask("GET", "/agent/v1/nothing"), "404 not_found");
}

TEST_F(AgentAnswers, RefuseParametersThatTheKindDoesNotHave) {
  ASSERT_EQ(permit(4), "204");
  EXPECT_EQ(operate("o1", "scavenge", {{"throttle", 50}}), "400 bad_request");
  EXPECT_NE(answer_.value("detail", "").find("throttlePercent"), std::string::npos) << answer_;
  EXPECT_EQ(operate("o1", "scavenge", {{"synconly", true}}), "400 bad_request");
  EXPECT_EQ(operate("o1", "resign", {{"priority", 1}}), "400 bad_request");
  EXPECT_EQ(operate("o1", "set_priority", {{"priority", 1}, {"gates", json::array()}}), "202");
  EXPECT_EQ(operate("o1", "set_priority", {{"priority", 2}}), "409 conflict") << "a known id";
  EXPECT_EQ(ask("POST", "/agent/v1/operations/o1/cancel"), "409 conflict");
}

TEST_F(AgentAnswers, TellThatAScavengeWasNotBegunWhereTheHistoryOfTheNodeCannotBeRead) {
  ASSERT_EQ(permit(4), "204");
  history_status_ = 500;
  EXPECT_EQ(operate("o1", "scavenge", {{"threads", 1}}), "202");
  EXPECT_EQ(ended("o1").value("state", ""), "failed");
  EXPECT_EQ(posts_, 0) << "nothing was started";
}

TEST_F(AgentAnswers, StoreAFileForTheNewestControllerAlone) {
  const std::string content = "a key";
  const auto target = "/agent/v1/files/" + to_hex(sha256(as_bytes(content)));
  const auto put = [&](const std::string& query, const std::string& body) {
    return ask_raw("PUT", target + query, body);
  };
  EXPECT_EQ(ask("GET", target), "404 not_found");
  EXPECT_EQ(put("", content), "400 bad_request");
  EXPECT_EQ(put("?controllerEpoch=4", "another"), "400 bad_request");
  EXPECT_EQ(put("?controllerEpoch=4", content), "200");
  EXPECT_EQ(answer_.value("bytes", 0), 5) << answer_;
  EXPECT_EQ(put("?controllerEpoch=3", content), "409 refused");
  EXPECT_EQ(ask("GET", target), "200");
  EXPECT_EQ(ask_raw("HEAD", target, ""), "200");
  EXPECT_EQ(ask("GET", "/agent/v1/files"), "200");
  EXPECT_EQ(answer_["files"].size(), 1U) << answer_;
  EXPECT_EQ(ask("DELETE", target + "?controllerEpoch=3"), "409 refused");
  EXPECT_EQ(ask("DELETE", target + "?controllerEpoch=4"), "204");
  EXPECT_EQ(ask("GET", target), "404 not_found");
}

TEST_F(AgentAnswers, KeepAFileThatAnOperationRefersTo) {
  const std::string content = "a key";
  const auto hash = to_hex(sha256(as_bytes(content)));
  const auto target = "/agent/v1/files/" + hash + "?controllerEpoch=4";
  ASSERT_EQ(permit(4), "204");
  ASSERT_EQ(ask_raw("PUT", target, content), "200");
  look_takes_ = milliseconds(10'000);
  // Any kind may refer to one; "gates" is what each has.
  ASSERT_EQ(
      operate("o1", "scavenge", {{"threads", 1}, {"gates", {{{"name", hash}, {"limit", 0}}}}}),
      "202");
  EXPECT_EQ(ask("DELETE", target), "409 conflict");
  look_takes_ = milliseconds(0);
  ended("o1");
  EXPECT_EQ(ask("DELETE", target), "204");
}

TEST(AgentAnswer, HasACodeForEachError) {
  const auto code = [](Errc errc) {
    return json::parse(problem_of(Error{errc, "x"}).body).at("code").get<std::string>();
  };
  EXPECT_EQ(code(Errc::kInvalidArgument), "bad_request");
  EXPECT_EQ(code(Errc::kNotFound), "not_found");
  EXPECT_EQ(code(Errc::kRefused), "refused");
  EXPECT_EQ(code(Errc::kConflict), "conflict");
  EXPECT_EQ(code(Errc::kNoSpace), "unavailable");
}

}  // namespace
}  // namespace verger::agent
