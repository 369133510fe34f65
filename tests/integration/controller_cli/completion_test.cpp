// What a shell makes of `verger completion bash`.
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "controller/cli/commands.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

namespace verger::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class BashCompletion : public ::testing::Test {
 protected:
  BashCompletion() {
    const char* arguments[] = {"verger", "completion", "bash"};
    std::ostringstream out, err;
    EXPECT_EQ(run_verger(3, arguments, out, err), 0) << err.str();
    std::ofstream(script_) << out.str();
  }
  /// What is offered for the last of these words.
  std::string offered(const std::string& words) {
    const auto result = test::run(
        {"bash", "-c",
         "source " + script_.string() + "; COMP_WORDS=(" + words +
             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _verger; echo \"${COMPREPLY[@]}\""});
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }
  test::TempDirectory directory_;
  std::filesystem::path script_ = directory_.path() / "verger.bash";
};

TEST_F(BashCompletion, OffersCommandsOptionsAndTheirWords) {
  EXPECT_EQ(offered("verger sch"), "schedule\n");
  EXPECT_EQ(offered("verger policy d"), "diff delete\n");
  EXPECT_THAT(offered("verger plan scavenge orders --"),
              AllOf(HasSubstr("--strategy"), HasSubstr("--policy"), HasSubstr("--controller")));
  EXPECT_EQ(offered("verger plan scavenge orders --strategy f"), "followers-only\n");
  EXPECT_EQ(offered("verger run list -o j"), "json\n");
  EXPECT_EQ(offered("verger completion z"), "zsh\n");
  EXPECT_THAT(offered("verger --"), AllOf(HasSubstr("--reason"), Not(HasSubstr("--watch-times"))));
}

TEST_F(BashCompletion, LeavesFilesToTheShell) {
  EXPECT_EQ(offered("verger policy apply ''"), "\n");
  EXPECT_THAT(test::file_text(script_), HasSubstr("complete -o default"));
}

}  // namespace
}  // namespace verger::cli
