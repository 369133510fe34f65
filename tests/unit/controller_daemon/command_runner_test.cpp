#include "controller/daemon/command_runner.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "tests/support/temp_directory.h"

namespace verger::controller {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Its time passes only once a file has content.
class TimeAfterFile final : public http::Timers {
 public:
  explicit TimeAfterFile(std::string file) : file_(std::move(file)) {}
  boost::asio::awaitable<void> sleep_for(milliseconds) override {
    std::error_code missing;
    do {
      co_await http::system_timers().sleep_for(milliseconds(1));
    } while (std::filesystem::file_size(file_, missing) == 0 || missing);
  }

 private:
  std::string file_;
};

class CommandRunnerTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  /// A shell script in the directory of commands.
  std::string script(const std::string& name, const std::string& text, unsigned mode = 0755) const {
    const auto file = path("commands/" + name);
    std::ofstream(file, std::ios::trunc) << "#!/bin/sh\n" << text << '\n';
    std::filesystem::permissions(file, std::filesystem::perms(mode));
    return file;
  }
  CommandRunner runner(milliseconds limit = std::chrono::seconds(30),
                       http::Timers& timers = http::system_timers()) {
    return {context_.get_executor(),
            {.directory = path("commands"), .limit = limit},
            timers,
            null_log()};
  }
  /// To its end.
  Result<void> run(CommandRunner& commands, std::vector<std::string> command,
                   std::string input = {}) {
    Result<void> out = Error{Errc::kTimeout, "it has not ended"};
    boost::asio::co_spawn(
        context_, commands.run(std::move(command), std::move(input)),
        [&out](const std::exception_ptr&, Result<void> result) { out = std::move(result); });
    context_.restart();
    context_.run_for(std::chrono::seconds(20));
    return out;
  }
  static std::string text_of(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  CommandRunnerTest() {
    std::filesystem::create_directory(path("commands"));
    std::filesystem::permissions(path("commands"), std::filesystem::perms(0755));
  }
  test::TempDirectory directory_;
  boost::asio::io_context context_{1};
};

TEST_F(CommandRunnerTest, RunsAProgramOfItsDirectoryWithACleanEnvironment) {
  ASSERT_EQ(::setenv("VERGER_TOKEN", "a-secret-of-vergerd", 1), 0);
  script("tell", "{ pwd; cat; echo; env; echo \"$1\"; } > " + path("out"));
  auto commands = runner();
  const auto ran = run(commands, {"tell", "now"}, "{\"moment\":\"done\"}");
  EXPECT_TRUE(ran.has_value()) << ran.error().message;
  ::unsetenv("VERGER_TOKEN");
  EXPECT_EQ(commands.running(), 0U);
  EXPECT_THAT(text_of(path("out")),
              AllOf(HasSubstr("/\n{\"moment\":\"done\"}\n"), HasSubstr("PATH=/usr/local/bin"),
                    HasSubstr("now\n"), Not(HasSubstr("a-secret")), Not(HasSubstr("HOME="))));
}

TEST_F(CommandRunnerTest, AnExitCodeIsAnOutcome) {
  script("fail", "exit 3");
  auto commands = runner();
  EXPECT_THAT(run(commands, {"fail"}).error().message, HasSubstr("exited with 3"));
}

TEST_F(CommandRunnerTest, RunsNothingFromAnywhereElse) {
  std::ofstream(path("outside")) << "#!/bin/sh\n";
  std::filesystem::permissions(path("outside"), std::filesystem::perms(0755));
  std::filesystem::create_symlink(path("outside"), path("commands/link"));
  std::filesystem::create_directory(path("commands/below"));
  const auto commands = runner();
  for (const auto& program :
       {std::string("/bin/sh"), path("outside"), std::string("../outside"), std::string("link"),
        std::string("below"), path("commands/../outside"), std::string()}) {
    EXPECT_FALSE(commands.admit(program).has_value()) << program;
  }
  auto all = runner();
  EXPECT_FALSE(run(all, {"/bin/sh", "-c", "touch " + path("made")}).has_value());
  EXPECT_FALSE(std::filesystem::exists(path("made")));
  const auto whole = script("tell", "");
  EXPECT_TRUE(commands.admit(whole).has_value());
  const CommandRunner none(context_.get_executor(), {}, http::system_timers(), null_log());
  EXPECT_THAT(none.admit("tell").error().message, HasSubstr("--notification-commands"));
}

TEST_F(CommandRunnerTest, RunsNothingThatOthersCanChange) {
  const auto commands = runner();
  script("tell", "", 0775);
  EXPECT_THAT(commands.admit("tell").error().message, HasSubstr("chmod go-w"));
  script("tell", "", 0755);
  std::filesystem::permissions(path("commands"), std::filesystem::perms(0777));
  EXPECT_THAT(commands.admit("tell").error().message, HasSubstr("chmod go-w"));
}

TEST_F(CommandRunnerTest, WhatRunsTooLongIsKilledWithWhatItStarted) {
  script("hang", "sleep 600 & echo $! > " + path("child") + "; wait");
  TimeAfterFile time(path("child"));
  auto commands = runner(std::chrono::seconds(30), time);
  EXPECT_EQ(run(commands, {"hang"}).error().code, Errc::kTimeout);
  EXPECT_EQ(commands.running(), 0U);
  const auto child = std::stoi(text_of(path("child")));
  // An orphan that was killed is gone, or waits for init to notice; on a busy machine it has to get
  // its turn to end.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::string state = "R";
  while (state != "gone" && state != "Z" && state != "X" &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string number;
    std::string name;
    state = "gone";
    stat >> number >> name >> state;
  }
  EXPECT_THAT(state, ::testing::AnyOf("gone", "Z", "X"));
}

}  // namespace
}  // namespace verger::controller
