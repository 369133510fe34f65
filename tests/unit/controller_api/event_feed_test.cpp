#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using testing::ApiHarness;
using ::testing::HasSubstr;
using ::testing::Not;

class EventFeedTest : public ::testing::Test {
 protected:
  /// Sequence numbers of the next piece of a stream.
  std::vector<std::int64_t> ids(const http::Response& response) {
    const auto piece = a_.h.wait_for(response.stream());
    EXPECT_TRUE(piece.has_value());
    std::vector<std::int64_t> out;
    std::istringstream in(*piece);
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("id: ")) {
        out.push_back(std::stoll(line.substr(4)));
      }
    }
    return out;
  }
  ApiHarness a_;
};

TEST_F(EventFeedTest, EventsAreThoseThatTheRoleMaySee) {
  a_.token = a_.create_token("ann", "admin");
  const auto admin = a_.token;
  const auto viewer = a_.create_token("vic", "viewer");
  const auto worker = a_.create_token("olga", "operator");
  a_.call("POST", "/clusters/prod/pause", {{"reason", "secret-reason"}},
          {{"Idempotency-Key", "k"}});
  const auto streams_of = [&](const std::string& token) {
    a_.token = token;
    std::set<std::string> out;
    const auto answer = a_.call("GET", "/events");
    EXPECT_THAT(answer.body, Not(HasSubstr("\"salt\"")));
    EXPECT_THAT(answer.body, Not(HasSubstr("answer-kept")));
    const auto page = ApiHarness::json_of(answer);
    EXPECT_EQ(page["next"], a_.h.journal->last_sequence()->value()) << "what is hidden is behind";
    for (const auto& event : page["events"]) {
      const std::string stream = event["stream"];
      out.insert(stream.substr(0, stream.find('/')));
    }
    return out;
  };
  EXPECT_EQ(streams_of(viewer), (std::set<std::string>{"cluster"}));
  EXPECT_EQ(streams_of(worker), (std::set<std::string>{"cluster"}));
  EXPECT_EQ(streams_of(admin), (std::set<std::string>{"audit", "cluster", "token"}));
}

TEST_F(EventFeedTest, EventsAfterTheEndAreOnlyThoseToCome) {
  const auto end = a_.h.journal->last_sequence()->value();
  ASSERT_GT(end, 0);
  const auto page = a_.get("/events?after=end");
  EXPECT_TRUE(page["events"].empty()) << page.dump(1);
  EXPECT_EQ(page["next"], end);
  a_.call("POST", "/clusters/prod/pause", {{"reason", "noon"}});
  const auto news = a_.get("/events?after=" + std::to_string(end));
  EXPECT_FALSE(news["events"].empty());
  EXPECT_EQ(a_.call("GET", "/events?after=never").status, 400);
}

TEST_F(EventFeedTest, ALongRunOfHiddenEventsIsNoEnd) {
  for (int i = 0; i < 1'100; ++i) {
    ASSERT_TRUE(
        a_.h.journal->append("audit", kAnyRevision, {NewEvent{"e"}}, a_.h.epoch).has_value());
  }
  ASSERT_TRUE(a_.h.journal->append("run/x", kAnyRevision, {NewEvent{"e"}}, a_.h.epoch).has_value());
  a_.token = a_.create_token("ann", "admin");
  a_.token = a_.create_token("vic", "viewer");
  const auto page = a_.get("/events?after=100");
  ASSERT_EQ(page["events"].size(), 1U);
  EXPECT_EQ(page["events"][0]["stream"], "run/x");
}

TEST_F(EventFeedTest, ServerSentEventsGoOnAfterTheLastEventId) {
  const auto id = a_.run_to_its_end();
  const http::Headers accept{{"Accept", "text/event-stream"}};
  const auto all = a_.call("GET", "/events", nullptr, accept);
  EXPECT_EQ(all.headers.get("Content-Type"), "text/event-stream");
  const auto first = ids(all);
  ASSERT_GT(first.size(), 10U);
  for (std::size_t i = 0; i < first.size(); ++i) {
    ASSERT_EQ(first[i], static_cast<std::int64_t>(i) + 1) << "the id is the journal's sequence";
  }
  auto resumed = accept;
  resumed.set("Last-Event-ID", "7");
  EXPECT_EQ(ids(a_.call("GET", "/events", nullptr, resumed)).front(), 8);
  // The header is newer than the address that the client began with.
  EXPECT_EQ(ids(a_.call("GET", "/events?after=2", nullptr, resumed)).front(), 8);
  const auto of_run = ids(a_.call("GET", "/events?run=" + id, nullptr, resumed));
  ASSERT_FALSE(of_run.empty());
  EXPECT_GT(of_run.front(), 7);
  auto wrong = accept;
  wrong.set("Last-Event-ID", "seven");
  EXPECT_EQ(a_.call("GET", "/events", nullptr, wrong).status, 400);
}

TEST_F(EventFeedTest, APieceOfTheStreamComesWhenSomethingHappens) {
  const auto last = a_.h.journal->last_sequence()->value();
  const http::Headers accept{{"Accept", "text/event-stream"},
                             {"Last-Event-ID", std::to_string(last)}};
  const auto stream = a_.call("GET", "/events", nullptr, accept);
  const auto quiet = a_.h.wait_for(stream.stream());
  EXPECT_THAT(*quiet, ::testing::StartsWith(":")) << "a comment keeps the connection alive";
  ASSERT_TRUE(a_.h.registry->set_paused("prod", true, "audit").has_value());
  EXPECT_THAT(*a_.h.wait_for(stream.stream()), HasSubstr("event: cluster-paused"));
}

TEST_F(EventFeedTest, EventsOfOneRunComeWithoutThoseOfOthers) {
  const auto hash = a_.planned();
  const std::string run =
      ApiHarness::json_of(a_.call("POST", "/plans/" + hash + "/apply")).at("id");
  ASSERT_TRUE(a_.h.run_to_end(run));
  const auto all = a_.get("/events?run=" + run);
  ASSERT_GE(all["events"].size(), 3U);
  for (const auto& event : all["events"]) {
    EXPECT_EQ(event["stream"], "run/" + run);
  }
  EXPECT_EQ(all["next"], a_.h.journal->last_sequence()->value());
  const auto rest = a_.get("/events?run=" + run + "&after=" + all["events"][1]["sequence"].dump());
  EXPECT_EQ(rest["events"].size(), all["events"].size() - 2);
}

}  // namespace
}  // namespace verger::controller
