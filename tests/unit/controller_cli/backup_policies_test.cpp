// The policies by which a cluster is backed up, as people read them.
#include "controller/cli/operations/backup_policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/controller_cli/cli_output.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

json policy(const char* name, const char* operation, const char* cluster) {
  return {{"name", name},
          {"enabled", true},
          {"schedule", json::array({{{"cron", "0 2 * * *"}, {"zone", "Europe/Berlin"}}})},
          {"plan",
           {{"operation", operation},
            {"backup",
             {{"task", "create"},
              {"repository", "offsite"},
              {"source", "follower"},
              {"nodes", ""},
              {"keepLast", 0},
              {"keepDaily", 7},
              {"keepWeekly", 5},
              {"verify", true},
              {"drillEvery", 7}}}}},
          {"selected", json::array({{{"cluster", cluster},
                                     {"last_due", "2026-11-23T01:00:00.0000000Z"},
                                     {"outcome", "run"},
                                     {"waiting", ""}}})}};
}

TEST(BackupPolicies, OfAClusterAreThoseOfTheOperationThatSelectIt) {
  const json all =
      json::array({policy("nightly", "backup", "orders"), policy("weekly", "scavenge", "orders"),
                   policy("other", "backup", "payments")});
  const auto found = backup_policies_of(all, "orders");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]["name"], "nightly");
  EXPECT_TRUE(backup_policies_of(all, "invoices").empty());
}

TEST(BackupPolicies, SayWhenWhereToAndWhatIsKept) {
  auto waiting = policy("spare", "backup", "orders");
  waiting["selected"][0]["waiting"] = "hours are closed";
  waiting["schedule"] = json::array();
  auto& backup = waiting["plan"]["backup"];
  backup["keepDaily"] = 0;
  backup["keepWeekly"] = 0;
  backup["drillEvery"] = 0;
  const auto text =
      said(print_backup_policies, json::array({policy("nightly", "backup", "orders"), waiting}));
  EXPECT_THAT(text, AllOf(HasSubstr("0 2 * * * Europe/Berlin"), HasSubstr("offsite"),
                          HasSubstr("7 daily, 5 weekly"), HasSubstr("verify, drill 1 of 7")));
  EXPECT_THAT(text, AllOf(HasSubstr("by hand"), HasSubstr("waits: hours are closed"),
                          Not(HasSubstr("0 latest"))));
}

TEST(BackupPolicies, AreACommandOfBackups) {
  EXPECT_EQ(verger({"backup", "policy"}).status, kUsage);
  EXPECT_EQ(verger_without_vergerd({"backup", "policy", "orders"}).status, kFailed);
}

}  // namespace
}  // namespace verger::cli
