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
  EXPECT_THAT(said_of.err, HasSubstr("--add-replica, or --replace NODE"));
}

}  // namespace
}  // namespace verger::cli
