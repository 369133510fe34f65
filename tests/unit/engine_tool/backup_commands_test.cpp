// `verger-db backup …` and `verger-db restore`, in-process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/base/memory_file_system.h"
#include "engine/log/chunk.h"
#include "engine/tool/program.h"
#include "engine/tool/workload.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"

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
