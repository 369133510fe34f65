#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/verify/lost_streams_job.h"
#include "nodeagent/operations/agent.h"
#include "nodeagent/operations/lost_streams_watch.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/database/lose_streams.h"
#include "tests/unit/nodeagent_operations/backup_fixture.h"
#include "tests/unit/nodeagent_operations/disk_agent_fixture.h"
#include "tests/unit/nodeagent_operations/follower_answers.h"

/// A server whose existence filter lacks streams is restarted by its agent, on the machine's disk.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Reads of streams are answered, but of one that is not found.
class ReadingAnswers final : public http::Client {
 public:
  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds deadline) override {
    if (!request.target.starts_with("/streams/")) {
      co_return co_await follower_.send(std::move(to), std::move(request), deadline);
    }
    ++reads;
    auto out = json_response({{"headOfStream", true}, {"entries", json::array()}});
    if (!unfound.empty() && request.target.contains(unfound)) {
      out.status = 404;
    }
    co_return out;
  }
  int reads = 0;
  std::string unfound;

 private:
  FollowerAnswers follower_;
};

class AHealing : public DiskAgentFixture {
 protected:
  AHealing() {
    auto& files = posix_file_system();
    test::DatabaseBuilder builder(files, database());
    for (int i = 0; i < 120; ++i) {
      builder.write("stream-" + std::to_string(i % 30), 1 + i % 3, 200);
    }
    builder.close();
    // What the server makes when it starts, and what it has lost before.
    std::filesystem::copy(existence(), directory_.path() / "good");
    test::lose_all_streams(files, database() / "index");
    open("cp " + (directory_.path() / "good").string() + "/* " + existence().string());
  }
  /// `start`: what the server does to its files when it starts.
  void open(const std::string& start) {
    open_agent("ls " + existence().string() + " > " + seen().string() + " && " + start, "true");
  }
  http::Client& client() override { return reading_; }
  [[nodiscard]] Path existence() const { return database() / "index" / "stream-existence"; }
  [[nodiscard]] Path seen() const { return directory_.path() / "seen"; }
  [[nodiscard]] std::string files_at_start() const {
    std::stringstream out;
    out << std::ifstream(seen()).rdbuf();
    return out.str();
  }

  ReadingAnswers reading_;
};

TEST_F(AHealing, StartsTheServerWithoutTheCheckpointAndReadsASample) {
  const auto status = run("heal_filter");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_THAT(files_at_start(), ::testing::Not(HasSubstr(".chk")));
  const auto& result = status["result"];
  EXPECT_GE(result.value("lostBefore", 0), 30) << result;
  EXPECT_EQ(result.value("lostAfter", -2), 0);
  EXPECT_EQ(result.value("streamsRead", 0), 20);
  EXPECT_EQ(reading_.reads, 20);
  EXPECT_THAT(result["notFound"], IsEmpty());
}

TEST_F(AHealing, SaysWhatTheServerStillDoesNotFind) {
  reading_.unfound = "stream-";
  open("cp " + (directory_.path() / "good" / "streamExistenceFilter.chk").string() + " " +
       existence().string());  // a filter that is no better
  const auto status = run("heal_filter");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  const auto& result = status["result"];
  EXPECT_GE(result.value("lostAfter", 0), 30) << result;
  EXPECT_EQ(result["notFound"].size(), 20U) << result;
}

TEST_F(AHealing, OfASoundFilterHasNothingToRead) {
  std::filesystem::copy(
      directory_.path() / "good", existence(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  const auto status = run("heal_filter");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"].value("lostBefore", -1), 0);
  EXPECT_EQ(status["result"].value("streamsRead", -1), 0);
}

class ALostStreamsWatch : public BackupFixture {
 protected:
  void watch() {
    agent_ = nullptr;
    auto opened = Agent::open({.journal = "/agent/journal.db",
                               .node = {.tls = false, .host = "n1", .port = 2113},
                               .poll_interval = milliseconds(100),
                               .lost_streams_period = std::chrono::hours(24)},
                              {.executor = host_.executor(),
                               .files = host_.disk(),
                               .clock = host_.clock(),
                               .timers = host_.timers(),
                               .client = host_.client(),
                               .jobs = *runner_,
                               .log = null_log(),
                               .inspection = [this]() -> node::NodeInspection* { return &node_; }});
    ASSERT_TRUE(opened) << opened.error().message;
    agent_ = *std::move(opened);
    agent_->start();
  }
  /// -1: it is not in the facts.
  std::int64_t lost() {
    EXPECT_EQ(ask("GET", "/agent/v1/facts"), "200");
    return answer_.value("lostStreams", std::int64_t{-1});
  }
};

TEST_F(ALostStreamsWatch, CountsSomeMinutesAfterTheStartAndThenOnceADay) {
  watch();
  EXPECT_EQ(lost(), -1);
  world_.run_for(std::chrono::minutes(10));
  EXPECT_EQ(lost(), 0);
  test::lose_all_streams(host_.disk(), "/db/index");
  world_.run_for(std::chrono::hours(23));
  EXPECT_EQ(lost(), 0);
  world_.run_for(std::chrono::hours(2));
  EXPECT_GE(lost(), 7);
}

TEST_F(ALostStreamsWatch, ForgetsWhatItCountedOfAServerThatWasRestartedMeanwhile) {
  test::lose_all_streams(host_.disk(), "/db/index");
  watch();
  world_.run_for(std::chrono::minutes(4) + std::chrono::seconds(30));
  node_.instance = "another";
  world_.run_for(std::chrono::seconds(60));
  EXPECT_EQ(lost(), -1);
  world_.run_for(std::chrono::minutes(10));
  EXPECT_GE(lost(), 7);
}

}  // namespace
}  // namespace verger::agent
