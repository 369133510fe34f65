// `verger-db backup …` and `verger-db restore`, in-process.
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/backup/key_file.h"
#include "engine/base/memory_file_system.h"
#include "engine/base/private_file.h"
#include "engine/log/chunk.h"
#include "engine/tool/program.h"
#include "engine/tool/workload.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"

namespace verger::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class BackupCommands : public ::testing::Test {
 protected:
  BackupCommands() {
    Workload workload{.events = 2'000, .streams = 40, .chunk_size = 100'000};
    workload.existence_filter_size = 20'000;
    value(generate_workload(disk, "/db", workload, null_log(), [](std::uint64_t) {}));
  }

  int run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "verger-db");
    out.str("");
    err.str("");
    ToolContext tool{disk, clock, random, null_log(), out, err};
    const int code = run_program(static_cast<int>(arguments.size()), arguments.data(), tool);
    clock.advance_seconds(24 * 3600);
    return code;
  }
  nlohmann::json json() { return nlohmann::json::parse(out.str()); }
  int create(std::vector<const char*> more = {}) {
    more.insert(more.begin(),
                {"-o", "json", "backup", "create", "/db", "--to", "/repository", "--node", "n1"});
    return run(more);
  }

  MemoryFileSystem disk;
  test::ManualClock clock;
  SeededRandom random{3};
  std::ostringstream out;
  std::ostringstream err;
};

TEST_F(BackupCommands, MakeListVerifyAndRestore) {
  ASSERT_EQ(create({"--digests", "readable"}), kExitDone) << err.str();
  const auto first = json();
  EXPECT_EQ(first["kind"], "full");
  EXPECT_EQ(first["state"], "stopped");
  EXPECT_EQ(first["reusedBytes"], 0);
  ASSERT_EQ(create(), kExitDone) << err.str();
  const auto second = json();
  EXPECT_EQ(second["kind"], "differential");
  EXPECT_EQ(second["parent"], first["id"]);
  EXPECT_GT(second["reusedBytes"].get<std::uint64_t>(), 400'000U);

  ASSERT_EQ(run({"backup", "list", "/repository"}), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr(first["id"].get<std::string>()));
  EXPECT_THAT(out.str(), HasSubstr("differential"));
  ASSERT_EQ(run({"backup", "list", "/repository", "--files", "latest"}), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("chunk-000000.000000"));
  EXPECT_THAT(out.str(), HasSubstr("index/indexmap"));

  ASSERT_EQ(run({"backup", "verify", "/repository"}), kExitDone) << out.str() << err.str();
  EXPECT_THAT(out.str(), HasSubstr("no damage found"));
  EXPECT_THAT(out.str(), HasSubstr("2,001 entries, 2,001 events"));
  const auto id = first["id"].get<std::string>();
  ASSERT_EQ(run({"backup", "verify", "/repository", id.c_str(), "--digests"}), kExitDone)
      << out.str() << err.str();

  ASSERT_EQ(run({"restore", "/restored", "--from", "/repository"}), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("exits with code 0: start it again"));
  ASSERT_EQ(run({"diff", "/db", "/restored"}), kExitDone) << out.str() << err.str();
  ASSERT_EQ(run({"verify", "/restored"}), kExitDone) << out.str();
}

TEST_F(BackupCommands, ListShowsWhenABackupWasVerified) {
  ASSERT_EQ(create(), kExitDone) << err.str();
  ASSERT_EQ(run({"backup", "list", "/repository"}), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("never     never"));
  ASSERT_EQ(run({"backup", "verify", "/repository", "--bytes-only"}), kExitDone) << err.str();
  clock.advance_seconds(24 * 3600);
  ASSERT_EQ(run({"backup", "list", "/repository"}), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("2 d ago   never"));
  ASSERT_EQ(run({"-o", "json", "backup", "list", "/repository"}), kExitDone) << err.str();
  EXPECT_EQ(json()["lastVerify"]["passed"], true);
  EXPECT_THAT(json()["lastVerify"]["summary"].get<std::string>(), HasSubstr("no damage"));
  EXPECT_EQ(json()["lastDrill"], nullptr);
  const auto blobs = value(disk.list("/repository/blobs"));
  const auto folder = "/repository/blobs/" + blobs.front().name;
  ok(disk.remove(folder + "/" + value(disk.list(folder)).front().name));
  ASSERT_EQ(run({"backup", "verify", "/repository"}), kExitFailed);
  ASSERT_EQ(run({"backup", "list", "/repository"}), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("FAILED 24 h ago"));
}

TEST_F(BackupCommands, VerifyFindsWhatTheSourceHadAndWhatTheRepositoryLost) {
  const Path chunk = "/db/chunk-000002.000000";
  ok(disk.set_read_only(chunk, false));
  auto content = value(read_file(disk, chunk));
  content[log::kChunkHeaderSize + 40'000] ^= std::byte{1};
  ok(write_file_durably(disk, chunk, content));
  ASSERT_EQ(create(), kExitDone) << err.str();
  // Its bytes are those that were copied: only its own checksum tells.
  EXPECT_EQ(run({"backup", "verify", "/repository", "--bytes-only"}), kExitDone) << out.str();
  ASSERT_EQ(run({"backup", "verify", "/repository"}), kExitFailed);
  EXPECT_THAT(out.str(), HasSubstr("chunk-000002.000000"));
  const auto hex = to_hex(sha256(content));
  ok(disk.remove("/repository/blobs/" + hex.substr(0, 2) + "/" + hex));
  ASSERT_EQ(run({"backup", "verify", "/repository", "--bytes-only"}), kExitFailed);
  EXPECT_THAT(out.str(), HasSubstr("DAMAGE: chunk-000002.000000"));
  EXPECT_THAT(out.str(), HasSubstr("is missing"));
  EXPECT_EQ(run({"restore", "/restored", "--from", "/repository"}), kExitFailed);
}

TEST_F(BackupCommands, EncryptAndMoveToAnotherKey) {
  auto keys = backup::KeyRing::make(random);
  const auto old_text = keys.to_text();
  ok(write_file_durably(disk, "/keys", as_bytes(old_text)));
  ok(write_file_durably(
      disk, "/orders.json",
      as_bytes(R"({"location": "/repository", "compression": "zstd", "keyFile": "/keys"})")));
  const std::vector<const char*> create_encrypted = {
      "-o", "json", "backup", "create", "/db", "--to", "/orders.json", "--node", "n1"};
  ASSERT_EQ(run(create_encrypted), kExitDone) << err.str();
  const auto stored = json()["storedBytes"].get<std::uint64_t>();
  std::uint64_t on_disk = 0;
  for (const auto& folder : value(disk.list("/repository/blobs"))) {
    for (const auto& blob : value(disk.list("/repository/blobs/" + folder.name))) {
      on_disk += blob.size;
    }
  }
  EXPECT_LT(on_disk, stored);
  EXPECT_EQ(run({"backup", "list", "/repository"}), kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr(keys.writing().id));
  EXPECT_THAT(err.str(), HasSubstr("keyFile"));
  ASSERT_EQ(run({"backup", "verify", "/orders.json"}), kExitDone) << out.str() << err.str();
  EXPECT_EQ(run({"backup", "rekey", "/repository"}), kExitUsage);

  keys.add_key(random);
  ok(write_file_durably(disk, "/keys", as_bytes(keys.to_text())));
  ASSERT_EQ(run(create_encrypted), kExitDone) << err.str();
  EXPECT_EQ(json()["kind"], "differential");
  ASSERT_EQ(run({"-o", "json", "backup", "rekey", "/orders.json"}), kExitDone) << err.str();
  EXPECT_GT(json()["rewritten"].get<int>(), 5);
  ASSERT_EQ(run({"-o", "json", "backup", "rekey", "/orders.json"}), kExitDone) << err.str();
  EXPECT_EQ(json()["rewritten"], 0);
  ASSERT_EQ(run({"restore", "/restored", "--from", "/orders.json"}), kExitDone) << err.str();
  ASSERT_EQ(run({"diff", "/db", "/restored"}), kExitDone) << out.str() << err.str();
  // With the old key alone nothing can be read.
  ok(write_file_durably(disk, "/keys", as_bytes(old_text)));
  EXPECT_EQ(run({"backup", "list", "/orders.json"}), kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr(keys.writing().id));
}

TEST(BackupKeyCommands, MakeAFileForItsOwnerAloneAndAddKeys) {
  const test::TempDirectory directory;
  const auto file = (directory.path() / "keys").string();
  const auto run = [&](const char* action, std::string& out) {
    std::ostringstream out_stream;
    std::ostringstream err_stream;
    ToolContext tool{posix_file_system(), system_clock(), system_random(),
                     null_log(),          out_stream,     err_stream};
    const char* arguments[] = {"verger-db", "backup", "key", action, file.c_str()};
    const int code = run_program(5, arguments, tool);
    out = out_stream.str() + err_stream.str();
    return code;
  };
  std::string out;
  ASSERT_EQ(run("create", out), kExitDone) << out;
  EXPECT_THAT(out, HasSubstr("cannot be read"));
  ok(check_private_file(file));
  const auto made = value(backup::read_key_file(posix_file_system(), file));
  EXPECT_EQ(run("create", out), kExitFailed);
  EXPECT_THAT(out, HasSubstr("key add"));
  ASSERT_EQ(run("add", out), kExitDone) << out;
  ok(check_private_file(file));
  const auto both = value(backup::read_key_file(posix_file_system(), file));
  ASSERT_EQ(both.keys().size(), 2U);
  EXPECT_EQ(both.keys()[1].id, made.writing().id);
  EXPECT_EQ(both.name_key(), made.name_key());
  ASSERT_EQ(run("list", out), kExitDone) << out;
  EXPECT_EQ(out, fmt::format("{}  (for writing)\n{}\n", both.writing().id, made.writing().id));
  EXPECT_THAT(out, Not(HasSubstr(to_hex(made.writing().key))));
  std::filesystem::permissions(file, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  EXPECT_NE(run("list", out), kExitDone);
  EXPECT_THAT(out, HasSubstr("chmod 600"));
}

TEST_F(BackupCommands, DeleteByRulesAndUndo) {
  ASSERT_EQ(create(), kExitDone) << err.str();
  const auto first = json()["id"].get<std::string>();
  ASSERT_EQ(create(), kExitDone) << err.str();
  ASSERT_EQ(run({"backup", "delete", "/repository", "--keep-last", "1", "--dry-run"}), kExitDone)
      << err.str();
  EXPECT_THAT(out.str(), HasSubstr(first + " would be deleted"));
  ASSERT_EQ(run({"backup", "delete", "/repository", "--keep-last", "1"}), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("0 backups"));
  ASSERT_EQ(run({"backup", "list", "/repository"}), kExitDone);
  EXPECT_THAT(out.str(), Not(HasSubstr(first)));
  ASSERT_EQ(run({"backup", "delete", "/repository", first.c_str(), "--undo"}), kExitDone)
      << err.str();
  ASSERT_EQ(run({"backup", "verify", "/repository", first.c_str()}), kExitDone) << out.str();
  ASSERT_EQ(run({"backup", "delete", "/repository", first.c_str(), "--grace", "0"}), kExitDone);
  ASSERT_EQ(run({"-o", "json", "backup", "delete", "/repository", "--grace", "0"}), kExitDone);
  EXPECT_EQ(json()["removedBackups"], 1);
  ASSERT_EQ(run({"backup", "verify", "/repository"}), kExitDone) << out.str() << err.str();
}

TEST_F(BackupCommands, TakeARepositoryFile) {
  ok(disk.make_directories("/etc"));
  ok(write_file_durably(disk, "/etc/orders.json", as_bytes(R"({"location": "/repository"})")));
  ASSERT_EQ(run({"backup", "create", "/db", "--to", "/etc/orders.json"}), kExitDone) << err.str();
  ASSERT_EQ(run({"backup", "verify", "/repository"}), kExitDone) << err.str();
  ASSERT_EQ(run({"restore", "/restored", "--from", "/etc/orders.json"}), kExitDone) << err.str();
  ok(write_file_durably(disk, "/etc/orders.json", as_bytes(R"({"place": "/repository"})")));
  EXPECT_EQ(run({"backup", "list", "/etc/orders.json"}), kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("/etc/orders.json: \"place\""));
}

TEST_F(BackupCommands, PutTheFilesBackThatARestoreKeptOrDiscardThem) {
  ASSERT_EQ(create(), kExitDone) << err.str();
  const auto id = json()["id"].get<std::string>();
  value(generate_workload(disk, "/other", {.events = 500, .streams = 9, .chunk_size = 100'000},
                          null_log(), [](std::uint64_t) {}));
  const auto before = value(read_file(disk, "/other/chunk-000000.000000"));
  const std::vector<const char*> restore{"restore", "/other", "--from", "/repository",
                                         "--keep-old"};
  ASSERT_EQ(run(restore), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("verger-db restore /other --revert " + id));
  EXPECT_NE(value(read_file(disk, "/other/chunk-000000.000000")), before);
  ASSERT_EQ(run({"restore", "/other", "--revert", id.c_str()}), kExitDone) << err.str();
  EXPECT_EQ(value(read_file(disk, "/other/chunk-000000.000000")), before);
  EXPECT_EQ(run({"restore", "/other", "--revert", id.c_str()}), kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("kept no files here"));

  ASSERT_EQ(run(restore), kExitDone) << err.str();
  EXPECT_EQ(run({"restore", "/other", "--discard-old", "20200101t000000z-00000000"}), kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("kept are those of " + id));
  ASSERT_EQ(run({"-o", "json", "restore", "/other", "--discard-old", id.c_str()}), kExitDone);
  EXPECT_GT(json()["bytes"].get<std::uint64_t>(), 10'000U);
  EXPECT_FALSE(value(disk.exists("/other/old-before-" + id)));
  EXPECT_EQ(run({"restore", "/other"}), kExitUsage);
  EXPECT_EQ(run({"restore", "/other", "--revert", "../x"}), kExitUsage);
}

TEST_F(BackupCommands, RestoreBesideFilesOfADatabaseAndAmongOthersOnlyWhereAskedTo) {
  ASSERT_EQ(create(), kExitDone) << err.str();
  ok(disk.make_directories("/home"));
  ok(write_file_durably(disk, "/home/notes.txt", as_bytes("mine")));
  EXPECT_EQ(run({"restore", "/home", "--from", "/repository"}), kExitRefused);
  EXPECT_THAT(err.str(), HasSubstr("/home: holds other files (notes.txt), and no database"));
  EXPECT_EQ(value(disk.list("/home")).size(), 1U) << "nothing was changed";
  ASSERT_EQ(run({"restore", "/home", "--from", "/repository", "--among-other-files"}), kExitDone);
  EXPECT_EQ(value(read_file(disk, "/home/notes.txt")).size(), 4U);
  ASSERT_EQ(run({"restore", "/home", "--from", "/repository"}), kExitDone) << err.str();

  ok(disk.make_directories("/volume/lost+found"));
  ASSERT_EQ(run({"restore", "/volume", "--from", "/repository"}), kExitDone) << err.str();
}

TEST_F(BackupCommands, RefuseWhatIsNone) {
  EXPECT_EQ(run({"backup", "list", "/db"}), kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("no backup repository"));
  EXPECT_EQ(run({"backup", "create", "/nothing", "--to", "/repository"}), kExitUsage);
  ASSERT_EQ(create(), kExitDone);
  EXPECT_EQ(run({"restore", "/restored", "--from", "/repository", "--backup", "x"}), kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("backup list"));
  const auto lock = value(disk.lock("/db/verger.lock"));
  EXPECT_EQ(run({"restore", "/db", "--from", "/repository"}), kExitRefused);
  EXPECT_EQ(create(), kExitDone);
  EXPECT_EQ(json()["state"], "live");
}

}  // namespace
}  // namespace verger::tool
