// What people read of a run of backups that has ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

#include "controller/cli/operations/reports.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

json report_of_backup(const char* outcome, bool passed) {
  return {{"outcome", outcome},
          {"backups",
           {{{"node", "n2"},
             {"generation", "g7"},
             {"checkpoints_at", "2026-11-22T01:15:00.0000000Z"},
             {"stored_bytes", 5 << 20U},
             {"reused_bytes", 4 << 20U},
             {"bytes_per_second", 1 << 20U},
             {"seconds", 61.0}}}},
          {"verified",
           {{{"node", "n2"},
             {"generation", "g7"},
             {"passed", passed},
             {"damage",
              passed ? json::array() : json{{{"path", "chunk-000001.000000"}, {"text", "cut"}}}}}}},
          {"drilled",
           {{{"node", "n3"},
             {"generation", "g7"},
             {"passed", passed},
             {"restore_ms", 1'000},
             {"start_ms", 500},
             {"read_ms", 500},
             {"summary", "30 events"}}}},
          {"deleted", passed ? json{"g1", "g2"} : json::array()},
          {"freed_bytes", 1 << 20U},
          {"scavenges", {{{"node", "n2"}, {"scavenge_id", "s-1"}, {"continued", passed}}}},
          {"timeline", nullptr},
          {"notes", {"a note"}}};
}

std::string printed_backup(const char* outcome, bool passed) {
  std::ostringstream out;
  std::ostringstream err;
  ApiClient api({.controllers = {http::parse_endpoint("http://127.0.0.1:1").value()}}, err);
  print_report({.api = api, .out = out, .err = err, .json = false, .width = {}},
               {{"operation", "backup"}, {"report", report_of_backup(outcome, passed)}});
  return out.str();
}

TEST(BackupReport, ShowsWhatWasMadeCheckedAndDeleted) {
  EXPECT_THAT(
      printed_backup("done", true),
      AllOf(HasSubstr("all was done\n"), HasSubstr("g7"), HasSubstr("5 MiB"),
            HasSubstr("g7 verified at n2: no damage"), HasSubstr("g7 drilled at n3: passed in 2"),
            HasSubstr("30 events"), HasSubstr("deleted: g1, g2 (1 MiB freed)"),
            HasSubstr("scavenge s-1 of n2 was stopped for the copy, and continued"),
            HasSubstr("note: a note")));
}

TEST(BackupReport, SaysLoudlyWhatIsDamaged) {
  EXPECT_THAT(printed_backup("damaged", false),
              AllOf(HasSubstr("DAMAGED: do not rely on"), HasSubstr("g7 verified at n2: DAMAGED"),
                    HasSubstr("  chunk-000001.000000: cut"), HasSubstr("g7 drilled at n3: FAILED"),
                    HasSubstr("and does NOT run again"), Not(HasSubstr("deleted:"))));
  EXPECT_THAT(printed_backup("drill-failed", false), HasSubstr("THE DRILL FAILED"));
  EXPECT_THAT(printed_backup("unfinished", true), HasSubstr("not all was done"));
}

}  // namespace
}  // namespace verger::cli
