// What the command line says to a tired operator: what, where, what to do next.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "tests/support/temp_directory.h"
#include "tests/unit/controller_cli/cli_output.h"

namespace verger::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Usage, NamesTheWordThatIsNoCommandAndThoseThatAre) {
  const auto noun = verger({"clutser", "list"});
  EXPECT_EQ(noun.status, kUsage);
  EXPECT_THAT(noun.err, AllOf(HasSubstr("unknown command \"clutser\"; did you mean cluster?"),
                              HasSubstr("verger --help")));
  EXPECT_THAT(verger({"clusters"}).err, HasSubstr("did you mean cluster?"));
  const auto verb = verger({"run", "stop", "1234"});
  EXPECT_EQ(verb.status, kUsage);
  EXPECT_THAT(verb.err,
              AllOf(HasSubstr("unknown command \"stop\""), HasSubstr("verger run --help")));
  EXPECT_THAT(verger({"--colour"}).err, HasSubstr("unknown option \"--colour\"; verger takes"));
  EXPECT_THAT(verger({"run", "xxxxxxxx"}).err,
              HasSubstr("verger run takes list, show, watch, pause, "));
}

TEST(Usage, NamesTheHelpOfTheCommandThatIsWrong) {
  const auto missing = verger({"plan", "scavenge"});
  EXPECT_EQ(missing.status, kUsage);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("verger: CLUSTER is required"),
                                 HasSubstr("verger plan scavenge --help")));
  EXPECT_THAT(verger({"plan", "scavenge", "c", "--threads", "9"}).err,
              AllOf(HasSubstr("--threads"), HasSubstr("1 to 4")));
}

TEST(Usage, RefusesWrongThrottlesAndFlags) {
  const auto refused = [](std::vector<const char*> words) {
    const auto said = verger_without_vergerd(std::move(words));
    EXPECT_EQ(said.status, kUsage);
    return said.err;
  };
  EXPECT_THAT(refused({"run", "throttle", "0123", "--bytes-per-second", "-1"}),
              HasSubstr("--bytes-per-second: Value -1 is less than 0"));
  EXPECT_THAT(refused({"run", "throttle", "0123", "--bytes-per-second", "20 parsecs"}),
              HasSubstr("\"20 parsecs\" is no size; it takes a whole number of bytes or one with a "
                        "unit, such as 4096, 250KiB"));
  EXPECT_THAT(refused({"run", "throttle", "0123", "--percent", "0"}), HasSubstr("1 to 100"));
  EXPECT_THAT(refused({"cluster", "grow", "orders", "--to", "five"}), HasSubstr("--to"));
  EXPECT_THAT(refused({"run", "throttle", "0123", "20"}),
              HasSubstr("verger run throttle does not take \"20\""));
  EXPECT_THAT(refused({"run", "show", "0123", "--gate"}),
              HasSubstr("verger run show has no option --gate; did you mean --gates?"));
}

TEST(Usage, PlansTakeSizesWithUnits) {
  const auto create = [](const char* rate) {
    return verger_without_vergerd(
        {"backup", "create", "c", "--repository", "main", "--bytes-per-second", rate});
  };
  for (const auto* rate : {"250KiB", "20 MiB", "4096", "0"}) {
    EXPECT_EQ(create(rate).status, kFailed) << rate << ": sent, not refused";
  }
  for (const auto* rate : {"-1", "fast", "1.5.1MiB", "99999999TiB"}) {
    const auto said = create(rate);
    EXPECT_EQ(said.status, kUsage) << rate;
    EXPECT_THAT(said.err, HasSubstr("--bytes-per-second: ")) << rate;
  }
}

TEST(Usage, PlansTakeLengthsOfTimeWithUnits) {
  const auto plan = [](const char* watch) {
    return verger_without_vergerd(
        {"plan", "certificates", "c", "--source", "csr", "--watch-ms", watch});
  };
  for (const auto* watch : {"0", "0s", "20000", "20s", "11m"}) {
    EXPECT_EQ(plan(watch).status, kFailed) << watch << ": sent, not refused";
  }
  for (const auto* watch : {"0.5", "1e3", "-20s", "20 years", "999999999999d"}) {
    const auto said = plan(watch);
    EXPECT_EQ(said.status, kUsage) << watch;
    EXPECT_THAT(said.err, HasSubstr("--watch-ms: ")) << watch;
  }
}

TEST(Usage, ARunThatAnEmptyVariableNamesIsRefused) {
  for (const auto* verb : {"show", "watch", "cancel"}) {
    const auto said = verger_without_vergerd({"run", verb, ""});
    EXPECT_EQ(said.status, kUsage) << verb;
    EXPECT_THAT(said.err, HasSubstr("RUN: it is empty")) << verb;
  }
}

TEST(Usage, AgentsBelongToNodesByNameOrByOrder) {
  const auto add = [](std::vector<const char*> more) {
    more.insert(more.begin(), {"cluster", "add", "c", "--node", "n1=http://127.0.0.1:2111"});
    return verger_without_vergerd(more);
  };
  EXPECT_EQ(add({"--agent", "n1=http://127.0.0.1:2121"}).status, kFailed) << "sent, not refused";
  EXPECT_EQ(add({"--agent", "http://127.0.0.1:2121"}).status, kFailed);
  const auto other = add({"--agent", "n2=http://127.0.0.1:2121"});
  EXPECT_EQ(other.status, kUsage);
  EXPECT_THAT(other.err, HasSubstr("there is no --node n2=URL"));
  EXPECT_EQ(add({"--agent", "http://a", "--agent", "http://b"}).status, kUsage);
}

TEST(Watching, ASilentControllerSaysNothingAboutTheRun) {
  const auto said =
      verger_without_vergerd({"run", "watch", "0123456789abcdef", "--wait-seconds", "0"});
  EXPECT_EQ(said.status, kStillWaiting) << "not 1: the run may well go on";
  EXPECT_THAT(said.err,
              AllOf(HasSubstr("http://127.0.0.1:1: the controller cannot be reached"),
                    HasSubstr("is not known"), HasSubstr("verger run watch 0123456789ab")));
  const auto shown = verger_without_vergerd({"run", "show", "0123456789abcdef"});
  EXPECT_EQ(shown.status, kFailed);
  EXPECT_THAT(shown.err, Not(HasSubstr("carried out")));
}

TEST(Token, IsTakenFromAFileAndItIsSaidWhereOthersCanReadIt) {
  const test::TempDirectory directory;
  const auto path = directory.path() / "token";
  std::ofstream(path) << "verger_1_secret\n";
  ASSERT_EQ(::setenv("VERGER_TOKEN_FILE", path.c_str(), 1), 0);
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  EXPECT_THAT(verger_without_vergerd({"run", "list"}).err, HasSubstr("chmod 600 " + path.string()));
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  EXPECT_THAT(verger_without_vergerd({"run", "list"}).err, Not(HasSubstr("chmod")));
  ::unsetenv("VERGER_TOKEN_FILE");
}

}  // namespace
}  // namespace verger::cli
