#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nodeagent/operations/backup/backup_access.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"
#include "tests/unit/nodeagent_operations/disk_agent_fixture.h"

/// A database that is copied while its server is stopped, on the machine's disk.
namespace verger::agent {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class AnOfflineBackup : public DiskAgentFixture {
 protected:
  AnOfflineBackup() {
    test::DatabaseBuilder builder(posix_file_system(), database());
    for (int i = 0; i < 30; ++i) {
      builder.write("stream", 2, 400);
    }
    builder.close();
    auto& files = posix_file_system();
    value(files.make_directories(directory_.path() / "repositories"));
    value(files.make_directories(directory_.path() / "backup"));
    describe("nightly", directory_.path() / "backup");
    describe("gone", directory_.path() / "gone");
    backups_ = std::make_shared<BackupAccess>(
        BackupAccess{.repositories = directory_.path() / "repositories",
                     .temporary = directory_.path() / "agent" / "backup",
                     .files = files,
                     .database = files,
                     .clock = system_clock(),
                     .random = system_random(),
                     .log = null_log(),
                     .jobs = jobs_,
                     .host = "db1"});
    open_agent();
  }

  void describe(const std::string& name, const Path& location) {
    value(write_file_durably(posix_file_system(),
                             directory_.path() / "repositories" / (name + ".json"),
                             as_bytes(json{{"location", location.string()}}.dump())));
  }
  json back_up(const json& parameters) { return run("offline_backup", parameters); }
};

TEST_F(AnOfflineBackup, StopsTheServerForTheCopyAndStartsItAgain) {
  const auto status = back_up({{"repository", "nightly"}, {"node", "n1"}, {"cluster", "orders"}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(deeds(), "stop\nstart\n");
  const auto& result = status["result"];
  EXPECT_EQ(result.value("state", ""), "stopped");
  EXPECT_EQ(result.value("node", ""), "n1");
  EXPECT_EQ(result.value("serverVersion", ""), "24.10.0");
  EXPECT_EQ(result.value("endPosition", 0), result.value("writerPosition", -1));
}

TEST_F(AnOfflineBackup, HealsTheFilterOfTheServerThatItStartsWhereThatIsWanted) {
  const auto checkpoint =
      directory_.path() / "db" / "index" / "stream-existence" / "streamExistenceFilter.chk";
  ASSERT_TRUE(std::filesystem::exists(checkpoint));
  const auto status = back_up({{"repository", "nightly"}, {"node", "n1"}, {"healFilter", true}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(deeds(), "stop\nstart\n");
  EXPECT_FALSE(std::filesystem::exists(checkpoint));
}

TEST_F(AnOfflineBackup, LeavesTheFilterAsItIsOtherwise) {
  const auto checkpoint =
      directory_.path() / "db" / "index" / "stream-existence" / "streamExistenceFilter.chk";
  const auto status = back_up({{"repository", "nightly"}, {"node", "n1"}, {"healFilter", false}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_TRUE(std::filesystem::exists(checkpoint));
}

TEST_F(AnOfflineBackup, RefusesAHealThatIsNeitherTrueNorFalse) {
  const auto status = back_up({{"repository", "nightly"}, {"node", "n1"}, {"healFilter", "yes"}});
  EXPECT_THAT(status.value("error", ""), HasSubstr("healFilter must be true or false"));
  EXPECT_EQ(deeds(), "");
}

TEST_F(AnOfflineBackup, LeavesTheServerRunningWhereTheRepositoryIsNotThere) {
  const auto status = back_up({{"repository", "gone"}, {"node", "n1"}});
  EXPECT_EQ(status.value("errorCode", ""), "unavailable");
  EXPECT_THAT(status.value("error", ""), HasSubstr("mount its file system"));
  EXPECT_EQ(deeds(), "");
}

TEST_F(AnOfflineBackup, StartsTheServerAgainWhereTheCopyIsRefused) {
  value(write_file_durably(posix_file_system(), directory_.path() / "db" / "truncate.chk",
                           as_bytes(std::string_view("\x10\0\0\0\0\0\0\0", 8))));
  const auto status = back_up({{"repository", "nightly"}, {"node", "n1"}});
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("the log is to be cut"));
  EXPECT_EQ(deeds(), "stop\nstart\n");
}

}  // namespace
}  // namespace verger::agent
