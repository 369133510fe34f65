#include "nodeagent/external/child_process.h"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

namespace verger::external {
namespace {

using std::chrono::seconds;

class ChildProcessTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_.path() / name).string();
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    return test::file_text(path(name));
  }
  /// A program that writes its number and then waits to be killed.
  [[nodiscard]] ChildOptions endless() const {
    return {.command = {"/bin/sh", "-c", "echo $$ > " + path("pid") + "; exec sleep 600"}};
  }
  [[nodiscard]] bool is_up(const std::string& name) const {
    return test::eventually(seconds(20), [&] { return !text(name).empty(); });
  }
  static bool is_gone(std::int64_t id) {
    return test::eventually(seconds(20), [id] { return !process_with(id); });
  }

  test::TempDirectory directory_;
};

TEST_F(ChildProcessTest, GetsItsEnvironmentAndTellsHowItEnded) {
  ASSERT_EQ(::setenv("VERGER_TEST_OF_A_CHILD", "inherited", 1), 0);
  const auto child = ChildProcess::start(
      {.command = {"/bin/sh", "-c", "echo $MINE $VERGER_TEST_OF_A_CHILD; echo wrong >&2; exit 7"},
       .environment = {{"MINE", "given"}},
       .without = "VERGER_",
       .output = path("out")});
  ASSERT_TRUE(child);
  EXPECT_TRUE(test::eventually(seconds(20), [&] { return (*child)->status().has_value(); }));
  EXPECT_EQ((*child)->status(), 7);
  EXPECT_EQ(text("out"), "given\nwrong\n");
  ::unsetenv("VERGER_TEST_OF_A_CHILD");
}

TEST_F(ChildProcessTest, ThatCannotBeRunEnds) {
  const auto child = ChildProcess::start({.command = {path("nothing")}});
  ASSERT_TRUE(child);
  EXPECT_TRUE(test::eventually(seconds(20), [&] { return (*child)->status().has_value(); }));
  EXPECT_EQ((*child)->status(), 127);
}

TEST_F(ChildProcessTest, EndsWithItsObjectAndSoDoesWhatItStarted) {
  auto child = ChildProcess::start(
      {.command = {"/bin/sh", "-c", "sleep 600 & echo $! > " + path("pid") + "; wait"}});
  ASSERT_TRUE(child);
  ASSERT_TRUE(is_up("pid"));
  const auto id = (*child)->id();
  child->reset();
  EXPECT_FALSE(process_with(id));
  EXPECT_TRUE(is_gone(std::stol(text("pid"))));
}

TEST_F(ChildProcessTest, EndsWhenTheProcessThatStartedItIsKilled) {
  const auto parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    const auto child = ChildProcess::start(endless());
    while (child && text("pid").empty()) {
      test::pause_briefly();
    }
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(is_gone(std::stol(text("pid"))));
}

TEST_F(ChildProcessTest, OfAnEarlierRunIsKilledAndNoOtherOne) {
  const auto child = ChildProcess::start(endless());
  ASSERT_TRUE(child);
  ASSERT_TRUE(is_up("pid"));
  auto seen = process_with((*child)->id());
  ASSERT_TRUE(seen);
  kill_group_of({.id = seen->id, .started = seen->started + 1});
  EXPECT_FALSE((*child)->status()) << "the number is another process's now";
  kill_group_of(*seen);
  EXPECT_TRUE(test::eventually(seconds(20), [&] { return (*child)->status().has_value(); }));
}

}  // namespace
}  // namespace verger::external
