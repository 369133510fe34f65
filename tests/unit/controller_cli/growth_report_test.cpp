// What people read of a growth that has ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/cli/operations/reports.h"
#include "tests/unit/controller_cli/cli_output.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

json growth_report(const char* outcome) {
  return {{"outcome", outcome},        {"node", "n4"},        {"role", "voter"},
          {"replaces", "n3"},          {"generation", "g1"},  {"bytes", 4'194'304},
          {"restore_seconds", 2.0},    {"leader", "n1"},      {"reason", ""},
          {"commands", json::array()}, {"timeline", nullptr}, {"notes", json::array()}};
}

TEST(GrowthReport, SaysWhoHasJoinedInWhosePlace) {
  auto report = growth_report("joined");
  report["notes"] = json::array({"n3 is no longer registered"});
  EXPECT_THAT(said(print_growth_report, report),
              AllOf(HasSubstr("n4 is a voter of the cluster, in the place of n3; n1 leads"),
                    HasSubstr("restored 4 MiB of backup g1 in 2.0 s"),
                    HasSubstr("note: n3 is no longer registered")));
}

TEST(GrowthReport, SaysLoudlyWhatIsNotAsItWas) {
  auto report = growth_report("not-undone");
  report["bytes"] = nullptr;
  report["restore_seconds"] = nullptr;
  report["reason"] = "not in time: 1 other voters have all that is committed";
  report["commands"] = json::array({"on n4: stop its server"});
  EXPECT_THAT(said(print_growth_report, report),
              AllOf(HasSubstr("NOT UNDONE: n4"), HasSubstr("not in time: 1 other voters"),
                    HasSubstr("by hand: on n4: stop its server")));
  EXPECT_THAT(said(print_growth_report, growth_report("not-registered")),
              HasSubstr("NOT REGISTERED: n4 runs and follows"));
}

TEST(ClusterGrow, WantsToKnowWhatTheNewNodeIs) {
  const auto said_of = verger_without_vergerd(
      {"cluster", "grow", "orders", "--node", "n4=http://n4:2113", "--agent", "http://n4:2114"});
  EXPECT_EQ(said_of.status, kUsage);
  EXPECT_THAT(said_of.err, HasSubstr("--to VOTERS, --add-replica, or --replace NODE"));
}

TEST(ClusterGrow, NamesBothPartsOfANewNode) {
  const auto said_of = verger_without_vergerd(
      {"cluster", "grow", "orders", "--to", "5", "--node", "n4=http://n4:2113"});
  EXPECT_EQ(said_of.status, kUsage);
  EXPECT_THAT(said_of.err, HasSubstr("named by --node and --agent"));
}

TEST(ClusterGrow, RefusesOptionsOfAnotherChange) {
  const std::vector<std::vector<const char*>> wrong{{"--replace", "n3", "--leaving", "n4"},
                                                    {"--replace", "n3", "--leaving-are-gone"},
                                                    {"--to", "3", "--replaced-is-gone"},
                                                    {"--to", "5", "--as-replica"}};
  for (const auto& each : wrong) {
    std::vector<const char*> words{"cluster", "grow", "orders"};
    words.insert(words.end(), each.begin(), each.end());
    const auto said_of = verger_without_vergerd(words);
    EXPECT_EQ(said_of.status, kUsage) << each.back();
    EXPECT_THAT(said_of.err, HasSubstr(each.size() > 2 ? each[2] : each[1])) << each.back();
  }
}

TEST(ResizeReport, SaysWhoJoinedAndWhatChanged) {
  json report{{"outcome", "resized"},
              {"from", 3},
              {"to", 5},
              {"joined", {"n4", "n5"}},
              {"left", json::array()},
              {"generation", "g1"},
              {"leader", "n2"},
              {"reason", ""},
              {"commands", json::array()},
              {"restarts", {{{"node", "n1"}, {"size", 5}, {"seeds", "changed"}}}},
              {"timeline", nullptr},
              {"notes", json::array()}};
  EXPECT_THAT(said(print_resize_report, report),
              AllOf(HasSubstr("the cluster has 5 voters instead of 3: n4 and n5 joined; n2 leads"),
                    HasSubstr("n1: ClusterSize 5; gossip seeds: changed")));
  report["outcome"] = "not-undone";
  report["reason"] = "start-n4 was not undone";
  report["commands"] = json::array({"on n1: set ClusterSize: 3"});
  EXPECT_THAT(said(print_resize_report, report),
              AllOf(HasSubstr("NOT UNDONE"), HasSubstr("start-n4 was not undone"),
                    HasSubstr("by hand: on n1: set ClusterSize: 3")));
}

}  // namespace
}  // namespace verger::cli
