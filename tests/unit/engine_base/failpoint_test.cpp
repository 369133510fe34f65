#include "engine/base/failpoint.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/temp_directory.h"

namespace verger {
namespace {

using testing::ElementsAre;

std::vector<std::string>& seen() {
  static std::vector<std::string> names;
  return names;
}

TEST(Failpoint, TellsTheHook) {
  seen().clear();
  set_failpoint_hook([](std::string_view name) { seen().emplace_back(name); });
  VERGER_FAILPOINT("test.first");
  VERGER_FAILPOINT("test.second");
  // Not a failpoint without hook: it would read this process's environment, once for all tests.
  set_failpoint_hook([](std::string_view) {});
  VERGER_FAILPOINT("test.third");
  set_failpoint_hook(nullptr);
  EXPECT_THAT(seen(), ElementsAre("test.first", "test.second"));
}

/// Runs `passes` in a child whose environment sets a failpoint; says how the child ended.
class FailpointByEnvironment : public testing::Test {
 protected:
  int run(const char* wanted, std::initializer_list<const char*> passes) {
    // The threadsafe style would execute the test anew; a plain fork of this one thread will do.
    const pid_t child = ::fork();
    if (child == 0) {
      ::unsetenv("VERGER_FAILPOINT");
      if (wanted != nullptr) {
        ::setenv("VERGER_FAILPOINT", wanted, 1);
      }
      ::setenv("VERGER_FAILPOINT_LOG", log_.c_str(), 1);
      for (const auto* name : passes) {
        VERGER_FAILPOINT(name);
      }
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
  std::vector<std::string> logged() const {
    std::vector<std::string> lines;
    std::ifstream in(log_);
    for (std::string line; std::getline(in, line);) {
      lines.push_back(line);
    }
    return lines;
  }

  test::TempDirectory directory_;
  std::filesystem::path log_ = directory_.path() / "failpoints.log";
};

TEST_F(FailpointByEnvironment, KillsTheProcessAtItsName) {
  const int status = run("b", {"a", "b", "c"});
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_THAT(logged(), ElementsAre("b"));
}

TEST_F(FailpointByEnvironment, KillsTheProcessAtTheNthPass) {
  EXPECT_TRUE(WIFEXITED(run("b:3", {"b", "a", "b"})));
  EXPECT_TRUE(logged().empty());
  EXPECT_TRUE(WIFSIGNALED(run("b:3", {"b", "a", "b", "b"})));
  EXPECT_THAT(logged(), ElementsAre("b"));
}

TEST_F(FailpointByEnvironment, ListsWhatIsPassedWhenNoneIsAskedFor) {
  EXPECT_TRUE(WIFEXITED(run(nullptr, {"a", "b", "a"})));
  EXPECT_TRUE(WIFEXITED(run(nullptr, {"c"})));
  EXPECT_THAT(logged(), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace verger
