#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "engine/redaction/redaction_list.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/agent.h"
#include "nodeagent/operations/redaction/held_files.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/redaction/redact.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"
#include "tests/unit/nodeagent_operations/backup_fixture.h"
#include "tests/unit/nodeagent_operations/follower_answers.h"

/// Events that are redacted while their server is stopped, on the machine's disk.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kSecret = "Erika Mustermann, Heidestrasse 17, 51147 Koeln, born 1964";

class ARedaction : public ::testing::Test {
 protected:
  ARedaction() {
    test::DatabaseBuilder builder(posix_file_system(), database());
    builder.write("customer-7", {secret_event(builder)});
    for (int i = 0; i < 30; ++i) {
      builder.write("stream", 2, 400);
    }
    builder.write("customer-8", {secret_event(builder)});  // in the active chunk
    builder.close();
    node_.emplace(database());
    offline_ = std::make_unique<external::OfflineServer>(
        external::DatabasePlace{.database = database(), .index = {}},
        external::ServiceOptions{.start_command = "echo start >> " + deeds().string(),
                                 .stop_command = "echo stop >> " + deeds().string()},
        posix_file_system(), system_clock(), system_random(), timers_, jobs_, jobs_, null_log());
    agent_ = value(Agent::open({.journal = directory_.path() / "agent" / "journal.db",
                                .node = {.tls = false, .host = "10.0.0.1", .port = 2113},
                                .poll_interval = milliseconds(10)},
                               {.executor = context_.get_executor(),
                                .files = posix_file_system(),
                                .clock = system_clock(),
                                .timers = timers_,
                                .client = client_,
                                .jobs = jobs_,
                                .log = null_log(),
                                .inspection = [this] { return &*node_; },
                                .offline = offline_.get()}));
    agent_->start();
  }

  static streams::NewEvent secret_event(test::DatabaseBuilder& builder) {
    auto event = builder.event();
    const auto text = as_bytes(kSecret);
    event.data.assign(text.begin(), text.end());
    return event;
  }
  [[nodiscard]] Path database() const { return directory_.path() / "db"; }
  [[nodiscard]] Path deeds() const { return directory_.path() / "deeds"; }
  [[nodiscard]] std::string done() const {
    std::stringstream out;
    out << std::ifstream(deeds()).rdbuf();
    return out.str();
  }
  [[nodiscard]] std::string list_of(std::string_view event) const {
    const auto plan = value(test::plan(posix_file_system(), database(),
                                       {.events = {value(redaction::parse_event_name(event))}}));
    return redaction::encode_list(plan.to_list());
  }
  /// As verger-db digest computes it.
  [[nodiscard]] std::string first_chunk_digest() const {
    const auto read = value(test::open_to_read(posix_file_system(), database()));
    const auto& log = read->transaction_log();
    streams::DigestJob job(*read, log.chunks().front()->end_position(), test::kTestTime,
                           {.readable = false});
    while (value(job.step({})).kind != StepOutcome::Kind::kDone) {
    }
    return to_hex(job.digest().chunks.front());
  }
  [[nodiscard]] std::vector<std::string> files_with_secret() const {
    return test::files_with(posix_file_system(), database(), kSecret);
  }

  /// The status of an operation once it has ended.
  json run(std::string_view kind, const json& parameters) {
    json status = json::object();
    const auto whole = [&]() -> net::awaitable<void> {
      EXPECT_EQ((co_await agent_->handler()(permit_request())).status, 204);
      const auto accepted = co_await agent_->handler()(operation_request(kind, parameters));
      EXPECT_EQ(accepted.status, 202) << accepted.body;
      while (status.value("finishedAt", "").empty()) {
        co_await timers_.sleep_for(milliseconds(2));
        status = json::parse(
            (co_await agent_->handler()({.method = "GET", .target = "/agent/v1/operations/o1"}))
                .body);
      }
      co_await agent_->stop();
    };
    std::exception_ptr failure;
    net::co_spawn(context_, whole(), [&failure](std::exception_ptr error) { failure = error; });
    context_.run_for(std::chrono::seconds(20));
    EXPECT_FALSE(failure);
    return status;
  }

  test::TempDirectory directory_;
  net::io_context context_{1};
  http::Timers& timers_ = http::system_timers();
  node::InlineJobRunner jobs_{timers_};
  FollowerAnswers client_;
  std::optional<CopiedNode> node_;
  std::unique_ptr<external::OfflineServer> offline_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(ARedaction, StopsTheServerBlanksSearchesAndStartsIt) {
  const auto list = list_of("0@customer-7");
  const auto before = first_chunk_digest();
  const auto status = run("offline_redaction", {{"list", list}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(done(), "stop\nstart\n");
  const auto& result = status["result"];
  EXPECT_EQ(result["blanked"], 1);
  EXPECT_EQ(result["records"], 1);
  EXPECT_EQ(result["texts"], 1);
  ASSERT_EQ(result["chunks"].size(), 1U);
  EXPECT_NE(result["chunks"][0]["md5Before"], result["chunks"][0]["md5After"]);
  EXPECT_EQ(result["chunks"][0]["digestBefore"], before);
  EXPECT_EQ(result["chunks"][0]["digestAfter"], first_chunk_digest());
  EXPECT_NE(before, first_chunk_digest());
  EXPECT_GT(result["searchedFiles"], 3);
  EXPECT_EQ(list_of("0@customer-7"), list) << "the digest is that of the redacted record";
  // The other customer has the same text, and is not redacted: the search finds it, in an event's
  // record, whole.
  EXPECT_EQ(result["proven"], false);
  ASSERT_EQ(result["found"].size(), 1U) << result;
  EXPECT_THAT(result["found"][0].get<std::string>(), HasSubstr("chunk-"));
  EXPECT_EQ(files_with_secret().size(), 1U);
  EXPECT_THAT(status.dump(), ::testing::Not(HasSubstr("Mustermann")));
}

TEST_F(ARedaction, RefusesAnEventInTheActiveChunkWhileTheServerRuns) {
  const auto status = run("offline_redaction", {{"list", list_of("0@customer-8")}});
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("run a scavenge of the cluster"));
  EXPECT_EQ(done(), "");
}

TEST_F(ARedaction, RefusesTheListOfAnotherHistory) {
  auto list = value(redaction::decode_list(list_of("0@customer-7")));
  list.front().digest.front() ^= std::byte{1};
  const auto status = run("offline_redaction", {{"list", redaction::encode_list(list)}});
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("belongs to another database"));
  EXPECT_EQ(done(), "");
}

TEST_F(ARedaction, CheckingFindsTheEventsAndChangesNothing) {
  const auto status =
      run("redaction_check",
          {{"events", {"0@customer-7", "9@customer-7", "0@customer-8"}}, {"metadata", false}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  const auto& result = status["result"];
  EXPECT_EQ(result["toDo"], 2);
  const auto list = value(redaction::decode_list(result["list"].get<std::string>()));
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list.front().stream, "customer-7");
  ASSERT_EQ(result["missing"].size(), 1U);
  EXPECT_THAT(result["missing"][0].get<std::string>(), HasSubstr("9@customer-7"));
  EXPECT_THAT(result["refused"], IsEmpty());
  ASSERT_EQ(result["obstacles"].size(), 1U);
  EXPECT_THAT(result["obstacles"][0].get<std::string>(), HasSubstr("is still written to"));
  EXPECT_EQ(done(), "");
  EXPECT_EQ(files_with_secret().size(), 2U);
}

TEST(HeldFiles, NamesWhatIsRemovedAndOpen) {
  const test::TempDirectory directory;
  const auto path = directory.path() / "chunk-000000.000000";
  std::ofstream held(path);
  held << "text";
  held.flush();
  EXPECT_THAT(removed_and_held(directory.path()), IsEmpty());
  value(posix_file_system().remove(path));
  EXPECT_THAT(removed_and_held(directory.path()),
              ElementsAre(HasSubstr("chunk-000000.000000 (process ")));
}

}  // namespace
}  // namespace verger::agent
