#include "nodeagent/operations/server_return.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "nodeagent/external/offline_server.h"
#include "tests/support/kept_log.h"
#include "tests/support/manual_clock.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

/// A stopped server is a process that has a file of the database open; commands write what they
/// did.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

class NoNode final : public http::Client {
 public:
  net::awaitable<Result<http::Response>> send(http::Endpoint, http::Request,
                                              milliseconds) override {
    co_return Error{Errc::kUnavailable, "nothing listens"};
  }
};

class ServerReturn : public ::testing::Test {
 protected:
  ServerReturn() { std::filesystem::create_directories(path("db")); }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  std::string deeds() const { return test::file_text(path("deeds")); }
  void make_fifo(const std::string& name) const {
    ASSERT_EQ(::mkfifo(path(name).c_str(), 0600), 0);
  }
  /// Lets the reader of the fifo continue.
  void release(const std::string& fifo) const {
    EXPECT_EQ(test::run({"/bin/sh", "-c", "echo > " + path(fifo)}).status, 0);
  }
  /// A process with a file of the database open for writing, until "end" is released.
  test::Process hold_files() const {
    make_fifo("end");
    test::Process holder({.command = {"/bin/sh", "-c",
                                      "exec 9>" + path("db/writer.chk") + "; echo > " + path("up") +
                                          "; read x < " + path("end")},
                          .environment = {},
                          .output = path("holder.log")});
    EXPECT_TRUE(test::eventually(seconds(20), [&] { return std::filesystem::exists(path("up")); }));
    return holder;
  }
  void serve_with(external::ServiceOptions service, Clock& clock = system_clock()) {
    offline_.emplace(external::DatabasePlace{.database = path("db"), .index = {}},
                     std::move(service), posix_file_system(), clock, system_random(),
                     http::system_timers(), runner_, runner_, log_);
  }
  template <class T>
  T result_of(net::awaitable<T> work) {
    std::optional<T> out;
    net::co_spawn(context_, std::move(work), [&out](std::exception_ptr error, T value) {
      EXPECT_FALSE(error);
      out = std::move(value);
    });
    context_.restart();
    context_.run_for(seconds(30));
    EXPECT_TRUE(out.has_value());
    return *std::move(out);
  }
  Observation look(milliseconds deadline = kServiceDeadline) {
    return result_of(await_server({.client = client_,
                                   .inspection = [] { return nullptr; },
                                   .timers = http::system_timers(),
                                   .clock = clock_,
                                   .log = null_log(),
                                   .offline = &*offline_,
                                   .remember =
                                       [this](const std::string& memory) {
                                         remembered_ = json::parse(memory);
                                         deeds_when_remembered_ = deeds();
                                       }},
                                  memory_, deadline));
  }

  test::TempDirectory directory_;
  test::KeptLog log_;
  net::io_context context_{1};
  node::InlineJobRunner runner_{http::system_timers()};
  std::optional<external::OfflineServer> offline_;
  NoNode http_;
  client::NodeClient client_{
      http_, {.tls = false, .host = "n1", .port = 2113}, client::SharedCredentials()};
  test::ManualClock clock_;
  json memory_ = json::object();
  json remembered_;
  std::string deeds_when_remembered_;
};

TEST_F(ServerReturn, StartsAgainWhereNothingAnswersAndTheFilesStayFree) {
  serve_with({.start_command = "echo start >> " + path("deeds"), .stop_command = "true"});
  const auto first = look();
  EXPECT_EQ(first.kind, Observation::Kind::kRunning);
  EXPECT_EQ(deeds(), "start\n");
  clock_.advance_seconds(12);
  EXPECT_EQ(look().text, "the server is starting (12 s)");
  EXPECT_EQ(deeds(), "start\n") << "a process takes a while to open its files";
  clock_.advance_seconds(20);
  look();
  EXPECT_EQ(deeds(), "start\nstart\n") << "that start did nothing";
  clock_.advance_seconds(600);
  auto holder = hold_files();
  EXPECT_EQ(look().text, "the server is starting (632 s)");
  EXPECT_EQ(deeds(), "start\nstart\n") << "it is at it";
  release("end");
  EXPECT_EQ(holder.wait(seconds(20)), 0);
  look();
  EXPECT_EQ(deeds(), "start\nstart\nstart\n") << "it has ended again";
  clock_.advance_seconds(3'000);
  const auto late = look();
  EXPECT_EQ(late.kind, Observation::Kind::kFailed);
  EXPECT_EQ(late.code, "no_answer");
  EXPECT_THAT(late.text, HasSubstr("Start it by hand"));
}

TEST_F(ServerReturn, AServerThatEndsToCutItsLogIsStartedAgainSoon) {
  serve_with({.start_command = "echo start >> " + path("deeds"), .stop_command = "true"});
  const auto open_and_end = [this] {
    auto server = hold_files();
    EXPECT_THAT(look().text, HasSubstr("the server is starting"));
    release("end");
    EXPECT_EQ(server.wait(seconds(20)), 0);
    std::filesystem::remove(path("end"));
    std::filesystem::remove(path("up"));
    look();
  };
  look();
  open_and_end();
  EXPECT_EQ(deeds(), "start\n") << "a service manager may start it first";
  clock_.advance_seconds(2);
  look();
  EXPECT_EQ(deeds(), "start\nstart\n");
  open_and_end();
  clock_.advance_seconds(2);
  look();
  EXPECT_EQ(deeds(), "start\nstart\nstart\n");
  // A third end is no longer that of a truncation.
  open_and_end();
  clock_.advance_seconds(100);
  look();
  EXPECT_EQ(deeds(), "start\nstart\nstart\n") << "the pause after three starts is 120 s";
  clock_.advance_seconds(20);
  look();
  EXPECT_EQ(deeds(), "start\nstart\nstart\nstart\n");
}

TEST_F(ServerReturn, AnAgentThatDiesInAStartIsFollowedByOneThatWaitsForIt) {
  serve_with({.start_command = "echo start >> " + path("deeds"), .stop_command = "true"});
  look();
  EXPECT_EQ(deeds_when_remembered_, "") << "journaled before the start";
  EXPECT_EQ(deeds(), "start\n");
  memory_ = remembered_;  // what the next agent reads
  EXPECT_EQ(look().text, "the server is starting (0 s)");
  EXPECT_EQ(deeds(), "start\n");
}

TEST_F(ServerReturn, KeepsTheReasonWhyTheServerDoesNotStart) {
  serve_with({.start_command = "exit 3", .stop_command = "true"});
  const auto failed = look();
  EXPECT_EQ(failed.kind, Observation::Kind::kUnknown);
  EXPECT_THAT(failed.text, HasSubstr("status 3"));
  clock_.advance_seconds(10);
  EXPECT_THAT(look().text, HasSubstr("status 3")) << "also while it waits";
  EXPECT_THAT(look(seconds(10)).text, HasSubstr("status 3")) << "and when it gives up";
}

TEST_F(ServerReturn, AServerOnItsWayDownIsNotStarted) {
  serve_with({.start_command = "echo start >> " + path("deeds"), .stop_command = "true"});
  auto holder = hold_files();
  EXPECT_EQ(look().text, "the server is shutting down (0 s)");
  clock_.advance_seconds(1'000);
  EXPECT_EQ(look().text, "the server is shutting down (1000 s)");
  EXPECT_EQ(deeds(), "");
  release("end");
  EXPECT_EQ(holder.wait(seconds(20)), 0);
  look();
  EXPECT_EQ(deeds(), "start\n");
}

TEST_F(ServerReturn, AStopIsOverWhenTheFilesAreFreeHoweverLongItsCommandTakes) {
  make_fifo("go");
  serve_with({.start_command = "true",
              .stop_command = "echo $$ > " + path("command") + "; read x < " + path("go"),
              .limit = milliseconds(50)});
  auto holder = hold_files();
  const auto too_long =
      result_of(offline_->stop(milliseconds(1), std::make_shared<node::StopFlag>()));
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().code, Errc::kTimeout);
  EXPECT_THAT(too_long.error().message,
              HasSubstr("process " + std::to_string(holder.pid()) + " still has its files open"));
  std::optional<Result<void>> stopped;
  net::co_spawn(context_, offline_->stop(seconds(60), std::make_shared<node::StopFlag>()),
                [&stopped](std::exception_ptr, Result<void> result) { stopped = result; });
  context_.restart();
  context_.run_for(milliseconds(300));
  EXPECT_FALSE(stopped.has_value()) << "the command's limit has passed, and the server runs";
  release("end");
  EXPECT_EQ(holder.wait(seconds(20)), 0);
  context_.run_for(seconds(20));
  ASSERT_TRUE(stopped.has_value());
  EXPECT_TRUE(stopped->has_value()) << stopped->error().message;
  // The commands end at last, and leave no zombie.
  const auto pid = std::stol(test::file_text(path("command")));
  release("go");
  EXPECT_TRUE(test::eventually(seconds(20), [&] {
    external::ServiceControl::reap_late_commands();
    return !std::filesystem::exists("/proc/" + std::to_string(pid));
  }));
}

TEST_F(ServerReturn, AProgramThatHasClosedTheFilesIsNotWaitedForUntilItEnds) {
  serve_with({.start_command = "true", .stop_command = "true"}, clock_);
  make_fifo("close");
  make_fifo("end");
  test::Process other({.command = {"/bin/sh", "-c",
                                   "exec 9>" + path("db/filler") + "; echo > " + path("up") +
                                       "; read x < " + path("close") + "; exec 9>&-; echo > " +
                                       path("closed") + "; read x < " + path("end")},
                       .environment = {},
                       .output = path("other.log")});
  const auto is_there = [this](const char* name) {
    return test::eventually(seconds(20), [&] { return std::filesystem::exists(path(name)); });
  };
  ASSERT_TRUE(is_there("up"));
  std::optional<Result<void>> stopped;
  net::co_spawn(context_, offline_->stop(seconds(600), std::make_shared<node::StopFlag>()),
                [&stopped](std::exception_ptr, Result<void> result) { stopped = result; });
  const auto look_again = [this] {
    context_.restart();
    context_.run_for(milliseconds(300));
  };
  clock_.advance_seconds(100);
  look_again();
  release("close");
  ASSERT_TRUE(is_there("closed"));
  look_again();
  EXPECT_FALSE(stopped.has_value()) << "a server closes its files before it ends";
  clock_.advance_seconds(61);
  EXPECT_TRUE(test::eventually(seconds(20), [&] {
    look_again();
    return stopped.has_value();
  }));
  EXPECT_TRUE(stopped.has_value() && stopped->has_value());
  release("end");
  EXPECT_EQ(other.wait(seconds(20)), 0);
}

TEST_F(ServerReturn, AStopThatTakesLongLogsOnceWhichProcessHasTheFilesOpen) {
  serve_with({.start_command = "true", .stop_command = "true"}, clock_);
  auto holder = hold_files();
  std::optional<Result<void>> stopped;
  net::co_spawn(context_, offline_->stop(seconds(60), std::make_shared<node::StopFlag>()),
                [&stopped](std::exception_ptr, Result<void> result) { stopped = result; });
  const auto look_again = [this] {
    context_.restart();
    context_.run_for(milliseconds(300));
  };
  look_again();
  const std::string in_the_way = "process=" + std::to_string(holder.pid());
  EXPECT_THAT(log_.text, Not(HasSubstr(in_the_way))) << "it has only just begun";
  clock_.advance_seconds(11);
  EXPECT_TRUE(test::eventually(seconds(20), [&] {
    look_again();
    return log_.text.contains(in_the_way);
  })) << log_.text;
  look_again();
  EXPECT_EQ(log_.text.find(in_the_way), log_.text.rfind(in_the_way));
  release("end");
  EXPECT_EQ(holder.wait(seconds(20)), 0);
  context_.restart();
  context_.run_for(seconds(20));
  ASSERT_TRUE(stopped.has_value());
  EXPECT_TRUE(stopped->has_value()) << stopped->error().message;
}

}  // namespace
}  // namespace verger::agent
