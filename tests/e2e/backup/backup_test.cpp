#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/e2e/backup/backup_case.h"

/// Backups of running nodes under write load, and clusters that are restored from them.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class Backup : public BackupCase {};

TEST_F(Backup, OfAFollowerUnderLoadIsVerifiedDrilledListedAndDeletedByRules) {
  start();
  SteadyWriter writer(cluster_, {});
  ASSERT_TRUE(writer.wait_for(10)) << cluster_.logs();
  back_up("create", {"--digests", "readable"});
  const auto first = the_backup();
  EXPECT_NE(first.value("node", ""), leader()) << first.dump(1);
  EXPECT_EQ(first.value("full", false), true) << first.dump(1);
  EXPECT_EQ(first.value("cluster", ""), "orders");
  ASSERT_TRUE(first["last_verify"].is_object()) << "a new backup is verified" << first.dump(1);
  EXPECT_EQ(first["last_verify"]["passed"], true);
  EXPECT_TRUE(first["last_drill"].is_null());

  back_up("drill", {first.value("id", "")});
  const auto drilled = the_backup();
  ASSERT_TRUE(drilled["last_drill"].is_object()) << drilled.dump(1);
  EXPECT_EQ(drilled["last_drill"]["passed"], true) << drilled.dump(1);
  fmt::print("drill: {}\n", drilled["last_drill"].dump());

  ASSERT_TRUE(writer.wait_for(10)) << cluster_.logs();
  back_up("create", {"--nodes", first.value("node", "")});
  auto all = backups();
  ASSERT_EQ(all.size(), 2U) << all.dump(1);
  EXPECT_EQ(all[0]["parent"], first["id"]) << "the next one is differential";
  EXPECT_GT(all[0].value("end_position", 0), first.value("end_position", 0));
  back_up("verify", {first.value("id", "")});
  EXPECT_TRUE(writer.wait_for(5)) << cluster_.logs();
  writer.stop();
  EXPECT_EQ(writer.failed(), 0);

  back_up("delete", {"--keep-last", "1"});
  EXPECT_EQ(the_backup()["id"], all[0]["id"]);
  const auto shown = cluster_.verger({"backup", "show", "orders", "latest"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_NE(shown.out.find(all[0].value("id", "")), std::string::npos) << shown.out;
  EXPECT_EQ(cluster_.verger({"backup", "policy", "orders"}).status, 0);
  const auto unknown = cluster_.verger({"backup", "policy", "odrers"});
  EXPECT_EQ(unknown.status, 1) << unknown.out;
  EXPECT_TRUE(unknown.err.contains("there is no cluster odrers")) << unknown.err;
}

TEST_F(Backup, WithADamagedByteIsFoundByVerify) {
  start();
  back_up("create", {"--verify", "false"});
  std::filesystem::path largest;
  for (const auto& each :
       std::filesystem::recursive_directory_iterator(cluster_.repository() / "blobs")) {
    if (each.is_regular_file() && (largest.empty() || each.file_size() > file_size(largest))) {
      largest = each.path();
    }
  }
  std::filesystem::permissions(largest, std::filesystem::perms(0600));
  std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(5'000);
  const auto byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(5'000);
  file.put(byte);
  file.close();
  const auto verified = cluster_.verger({"backup", "verify", "orders", "--wait"});
  EXPECT_EQ(verified.status, 1) << verified.out << verified.err << cluster_.logs();
  const auto backup = the_backup();
  ASSERT_TRUE(backup["last_verify"].is_object()) << backup.dump(1);
  EXPECT_EQ(backup["last_verify"]["passed"], false) << backup.dump(1);
}

}  // namespace
}  // namespace verger::test
