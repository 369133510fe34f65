// What people read of the backups of a cluster, and how they name one.
#include "controller/cli/operations/backup_catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/unit/controller_cli/cli_output.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

json check(bool passed, std::int64_t age_seconds, const char* summary) {
  return {{"at", "2026-11-22T03:00:00.0000000Z"},
          {"age_seconds", age_seconds},
          {"passed", passed},
          {"summary", summary},
          {"duration_ms", 1'500}};
}

json backup(const char* id, const char* node, std::int64_t age_seconds) {
  return {{"id", id},
          {"repository", "main"},
          {"repository_id", "0d7e5c5e-6f0c-4b0e-9f44-6a6f6c1a2b3c"},
          {"parent", nullptr},
          {"full", true},
          {"node", node},
          {"cluster", "orders"},
          {"host", "db-1"},
          {"server_version", "24.6.0"},
          {"state", "live"},
          {"started_at", "2026-11-23T03:00:00.0000000Z"},
          {"checkpoints_at", "2026-11-23T03:00:01.0000000Z"},
          {"finished_at", "2026-11-23T03:10:00.0000000Z"},
          {"age_seconds", age_seconds},
          {"end_position", 1'234'567},
          {"writer_position", 1'234'567},
          {"epoch_number", 4},
          {"chunk_size", 268'435'456},
          {"stored_bytes", 4'096},
          {"restored_bytes", 1'610'612'736},
          {"reused_bytes", 1'024},
          {"files", 12},
          {"logical_digest", "aa11"},
          {"readable_digest", nullptr},
          {"warnings", json::array({"the filter was left out"})},
          {"damage", nullptr},
          {"last_verify", nullptr},
          {"last_drill", nullptr}};
}

json list() {
  auto newest = backup("20261123t031000z-1a2b3c4d", "n2", 3'000);
  newest["full"] = false;
  newest["parent"] = "20261120t031000z-0a0b0c0d";
  newest["last_verify"] = check(true, 2'000, "all well");
  auto older = backup("20261120t031000z-0a0b0c0d", "n2", 3 * 86'400 + 10);
  older["last_verify"] = check(false, 200'000, "chunk-000003.000000: 1 byte differs");
  older["last_drill"] = check(true, 7'300, "equal");
  return {{"cluster", "orders"},
          {"backups", {newest, older}},
          {"of_other_clusters", 2},
          {"conflicts", json::array()},
          {"problems",
           {{{"node", "n3"}, {"repository", nullptr}, {"reason", "nothing listens there"}}}}};
}

TEST(BackupList, ShowsAgeKindAndWhenEachWasVerifiedAndDrilled) {
  const auto text = said(print_backups, list());
  EXPECT_THAT(text, ContainsRegex("20261123t031000z-1a2b3c4d +n2 +50 min +1.5 GiB +differential "
                                  "+33 min ago +never"));
  EXPECT_THAT(text, ContainsRegex("20261120t031000z-0a0b0c0d +n2 +3 d +1.5 GiB +full +FAILED 2 d "
                                  "ago +2 h ago +chunk-000003.000000: 1 byte differs"));
  EXPECT_THAT(text, HasSubstr("2 backups of other clusters in the same repositories: --all"));
  EXPECT_THAT(text, HasSubstr("n3: not known: nothing listens there"));
  EXPECT_THAT(text, Not(HasSubstr("repository  "))) << "there is one";
}

TEST(BackupList, FitsATerminalOfAHundredColumns) {
  std::istringstream lines(said(print_backups, list(), 100));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(BackupList, OfABrokenManifestShowsTheIdAndWhatIsWrong) {
  auto broken = backup("20261123t031000z-1a2b3c4d", "", 0);
  broken["damage"] = "its first line is no SHA-256";
  const auto text = said(print_backups, {{"backups", {broken}}});
  EXPECT_THAT(text, AllOf(HasSubstr("20261123t031000z-1a2b3c4d"),
                          HasSubstr("its first line is no SHA-256"), Not(HasSubstr("full"))));
}

TEST(BackupShow, SaysWhatItHoldsAndHowItWasChecked) {
  const auto text = said(print_backup, list()["backups"][0]);
  EXPECT_THAT(text, ContainsRegex("kind +differential, after 20261120t031000z-0a0b0c0d"));
  EXPECT_THAT(text, ContainsRegex("log ends at +1,234,567, epoch 4"));
  EXPECT_THAT(text, ContainsRegex("verified +2026-11-22T03:00:00Z, passed: all well"));
  EXPECT_THAT(text, ContainsRegex("drilled +never"));
  EXPECT_THAT(text, ContainsRegex("warning +the filter was left out"));
}

TEST(FindBackup, TakesLatestAndEitherEndOfAnId) {
  EXPECT_EQ(find_backup(list(), "latest").value()["id"], "20261123t031000z-1a2b3c4d");
  EXPECT_EQ(find_backup(list(), "0a0b0c0d").value()["id"], "20261120t031000z-0a0b0c0d");
  EXPECT_EQ(find_backup(list(), "20261120").value()["id"], "20261120t031000z-0a0b0c0d");
}

TEST(FindBackup, RefusesWhatMayBeSeveralAndNamesThem) {
  const auto found = find_backup(list(), "202611");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().exit_code, kUsage);
  EXPECT_THAT(found.error().message, AllOf(HasSubstr("20261123t031000z-1a2b3c4d"),
                                           HasSubstr("20261120t031000z-0a0b0c0d")));
  EXPECT_THAT(find_backup(list(), "2025").error().message, HasSubstr("orders has no backup 2025"));
  EXPECT_FALSE(find_backup({{"backups", json::array()}}, "latest").has_value());
}

TEST(BackupRepositories, AreShownPerAgentWithWhyThereAreNoDrills) {
  const json answer{{"cluster", "orders"},
                    {"repositories",
                     {{{"id", "0d7e5c5e-6f0c-4b0e-9f44-6a6f6c1a2b3c"},
                       {"name", "main"},
                       {"encrypted", true},
                       {"compression", "zstd"},
                       {"backups", 12},
                       {"agents",
                        {{{"node", "n1"},
                          {"name", "main"},
                          {"location", "s3://bucket/orders"},
                          {"free_bytes", nullptr},
                          {"drills", false},
                          {"drill_problem", "no scratch directory"}},
                         {{"node", "n2"},
                          {"name", "main"},
                          {"location", "s3://bucket/orders"},
                          {"free_bytes", nullptr},
                          {"drills", true},
                          {"drill_problem", nullptr}}}}}}},
                    {"conflicts", {"store names different repositories"}},
                    {"problems", json::array()}};
  const auto text = said(print_repositories, answer);
  EXPECT_THAT(text, ContainsRegex("main +n1 +s3://bucket/orders +- +12 +yes +no"));
  EXPECT_THAT(text, ContainsRegex("main +n2 +s3://bucket/orders +- +12 +yes +yes"));
  EXPECT_THAT(text, HasSubstr("n1: no drills: no scratch directory"));
  EXPECT_THAT(text, HasSubstr("conflict: store names different repositories"));
  EXPECT_THAT(said(print_repositories, {{"repositories", json::array()}}),
              HasSubstr("--backup-repositories"));
}

}  // namespace
}  // namespace verger::cli
