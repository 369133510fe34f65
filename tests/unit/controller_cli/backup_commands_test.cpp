// What the commands of `verger backup` take, and what a shell completes for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_cli/cli_output.h"

namespace verger::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(BackupCommands, EachTakesWhatItsTaskNeeds) {
  const auto create = verger({"backup", "create", "--help"}).out;
  EXPECT_THAT(create, AllOf(HasSubstr("--repository"), HasSubstr("--digests"), HasSubstr("--mode"),
                            HasSubstr("--keep-last"), HasSubstr("--wait")));
  EXPECT_THAT(create, AllOf(Not(HasSubstr("--task")), Not(HasSubstr("BACKUP"))));
  const auto drill = verger({"backup", "drill", "--help"}).out;
  EXPECT_THAT(drill,
              AllOf(HasSubstr("BACKUP"), HasSubstr("--repository"), HasSubstr("--bytes-per-second"),
                    Not(HasSubstr("--keep-last")), Not(HasSubstr("--generations"))));
  const auto remove = verger({"backup", "delete", "--help"}).out;
  EXPECT_THAT(remove, AllOf(HasSubstr("BACKUP"), HasSubstr("--keep-last"), HasSubstr("--yes"),
                            Not(HasSubstr("--digests"))));
}

TEST(BackupCommands, OfTheListAreWatchedAndTheOthersNot) {
  const auto refused = verger({"backup", "create", "orders", "--watch"});
  EXPECT_EQ(refused.status, kUsage);
  EXPECT_THAT(refused.err, HasSubstr("--watch goes with list, show"));
}

TEST(BackupCommands, WithoutAClusterAreRefused) {
  EXPECT_EQ(verger({"backup", "list"}).status, kUsage);
  EXPECT_EQ(verger({"backup"}).status, kUsage);
  EXPECT_EQ(verger({"backup", "delete", "--yes"}).status, kUsage);
}

TEST(Completion, KnowsWhichNamesArgumentsAndOptionsTake) {
  const auto bash = verger_without_vergerd({"completion", "bash"}).out;
  EXPECT_THAT(bash, AllOf(HasSubstr("\"backup verify:argument0\") echo \"clusters\""),
                          HasSubstr("\"backup verify:argument1\") echo \"backups\""),
                          HasSubstr("\"backup list:--repository names\") echo \"repositories\""),
                          HasSubstr("\"plan scavenge:--policy names\") echo \"policies\"")));
  const auto fish = verger_without_vergerd({"completion", "fish"}).out;
  EXPECT_THAT(fish, HasSubstr("-l repository -xa '(verger complete repositories (commandline "
                              "-opc)[4] 2>/dev/null)'"));
}

}  // namespace
}  // namespace verger::cli
