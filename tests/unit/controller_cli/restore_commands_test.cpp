// What the commands of `verger restore` take, and what they refuse before anything is sent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_cli/cli_output.h"

namespace verger::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RestoreCommands, EachTakesWhatItsTaskNeeds) {
  const auto plan = verger({"restore", "plan", "--help"}).out;
  EXPECT_THAT(plan, AllOf(HasSubstr("--scope"), HasSubstr("--nodes"), HasSubstr("--generation"),
                          HasSubstr("--keep-old"), Not(HasSubstr("--yes"))));
  const auto apply = verger({"restore", "apply", "--help"}).out;
  EXPECT_THAT(apply, AllOf(HasSubstr("HASH"), HasSubstr("--yes"), HasSubstr("--wait"),
                           Not(HasSubstr("--scope"))));
  const auto discard = verger({"restore", "discard-old", "--help"}).out;
  EXPECT_THAT(discard, AllOf(HasSubstr("--generation"), HasSubstr("--nodes"), HasSubstr("--yes"),
                             Not(HasSubstr("--scope")), Not(HasSubstr("--repository"))));
}

TEST(RestoreCommands, WithoutWhatTheyAreAboutAreRefused) {
  EXPECT_EQ(verger({"restore"}).status, kUsage);
  EXPECT_EQ(verger({"restore", "plan"}).status, kUsage);
  EXPECT_EQ(verger({"restore", "apply", "orders"}).status, kUsage);
  const auto discard = verger({"restore", "discard-old", "orders"});
  EXPECT_EQ(discard.status, kUsage);
  EXPECT_THAT(discard.err, HasSubstr("--generation"));
  const auto scope = verger({"restore", "plan", "orders", "--scope", "everything"});
  EXPECT_EQ(scope.status, kUsage);
  EXPECT_THAT(scope.err, AllOf(HasSubstr("node"), HasSubstr("cluster")));
}

}  // namespace
}  // namespace verger::cli
