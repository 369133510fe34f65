// `verger-db redact` as an operator calls it, on a disk in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/base/memory_file_system.h"
#include "engine/tool/program.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"

namespace verger::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Redact : public ::testing::Test {
 protected:
  Redact() {
    test::DatabaseBuilder builder(disk, "/db", {.chunk_size = 4096});
    for (int n = 0; n < 5; ++n) {
      auto event = builder.event();
      const auto text = secret(n);
      const auto bytes = as_bytes(text);
      event.data.assign(bytes.begin(), bytes.end());
      builder.write("customer-7", {event});
      builder.write("other", 3, 300);
    }
    builder.point();
    builder.close();
  }

  static std::string secret(int n) {
    std::string text = fmt::format("{{\"n\":{}", n);
    SeededRandom letters(static_cast<std::uint64_t>(n) + 100);
    for (int i = 0; i < 90; ++i) {
      text += static_cast<char>('a' + letters.below(26));
    }
    return text + "}";
  }
  int run(std::vector<std::string> arguments) {
    out.str("");
    err.str("");
    std::vector<const char*> argv{"verger-db", "redact", "/db", "--assume-stopped"};
    for (const auto& argument : arguments) {
      argv.push_back(argument.c_str());
    }
    SeededRandom random(3);
    ToolContext tool{disk, system_clock(), random, null_log(), out, err};
    return run_program(static_cast<int>(argv.size()), argv.data(), tool);
  }
  nlohmann::json json() const { return nlohmann::json::parse(out.str()); }
  void write(const Path& path, std::string_view text) {
    ok(write_file_durably(disk, path, as_bytes(text)));
  }

  MemoryFileSystem disk;
  std::ostringstream out;
  std::ostringstream err;
};

TEST_F(Redact, ShowsFirstAndChangesNothingThen) {
  const auto files = value(disk.list("/db"));
  ASSERT_EQ(run({"--events", "1@customer-7,3@customer-7", "--dry-run"}), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("to redact"));
  EXPECT_THAT(out.str(), HasSubstr("1@customer-7"));
  EXPECT_THAT(out.str(), HasSubstr("disk need: "));
  EXPECT_EQ(value(disk.list("/db")).size(), files.size());
  ASSERT_EQ(run({"--events", "0@$scavengePoints", "--dry-run"}), kExitRefused);
  EXPECT_THAT(out.str(), HasSubstr("refused: 0@$scavengePoints: is a scavenge point"));
}

TEST_F(Redact, ProvesThatTheTextIsGone) {
  ASSERT_EQ(run({"--events", "1@customer-7,3@customer-7", "--prove", "-o", "json"}), kExitDone)
      << out.str() << err.str();
  const auto first = json();
  EXPECT_EQ(first["result"], "redacted");
  EXPECT_EQ(first["records"].size(), 2U);
  EXPECT_FALSE(first["replaced"].empty());
  EXPECT_EQ(first["proof"]["clean"], true);
  EXPECT_GE(first["proof"]["files"].size(), 5U);
  EXPECT_THAT(out.str(), Not(HasSubstr(secret(1))));
  // Later the text has to be given.
  ASSERT_EQ(run({"--events", "1@customer-7", "--prove"}), kExitFailed);
  EXPECT_THAT(out.str(), HasSubstr("nothing to do"));
  EXPECT_THAT(out.str(), HasSubstr("give it with --plaintext"));
  write("/text", secret(1));
  ASSERT_EQ(run({"--events", "1@customer-7", "--prove", "--plaintext", "/text"}), kExitDone)
      << out.str();
  EXPECT_THAT(out.str(), HasSubstr("proof: clean"));
}

TEST_F(Redact, NamesFileAndOffsetOfWhatIsLeft) {
  ok(disk.make_directories("/db/old-before-20260101"));
  write("/db/old-before-20260101/chunk-000000.000000", "0123456789" + secret(2));
  ASSERT_EQ(run({"--events", "2@customer-7", "--prove"}), kExitFailed);
  EXPECT_THAT(out.str(), HasSubstr("old-before-20260101: a restore keeps the former files"));
  EXPECT_THAT(out.str(), HasSubstr("/db/old-before-20260101/chunk-000000.000000: NOT CLEAN"));
  EXPECT_THAT(out.str(), HasSubstr("  at 10: all of the data of 2@customer-7"));
  EXPECT_THAT(out.str(), HasSubstr("/db/chunk-000000.000001: clean"));
  EXPECT_THAT(out.str(), HasSubstr("proof: NOT CLEAN"));
}

TEST_F(Redact, SearchesOnlyWithoutEvents) {
  write("/text", secret(4));
  ASSERT_EQ(run({"--prove", "--plaintext", "/text"}), kExitFailed);
  EXPECT_THAT(out.str(), HasSubstr("in 4@customer-7"));
  ASSERT_EQ(run({"--events", "4@customer-7"}), kExitDone) << err.str();
  ASSERT_EQ(run({"--prove", "--plaintext", "/text"}), kExitDone) << out.str();
}

TEST_F(Redact, KeepsAListThatIsAppliedToARestoredNode) {
  const auto restored = disk.clone();
  write("/events", "# by request 77\n1@customer-7\r\n\n2@customer-7\n");
  ASSERT_EQ(run({"--events-file", "/events", "--list", "/list", "--append"}), kExitDone)
      << err.str();
  const auto list = value(read_file(disk, "/list"));
  EXPECT_THAT(as_text(list), HasSubstr(R"("stream":"customer-7","number":2)"));
  EXPECT_THAT(as_text(list), Not(HasSubstr(secret(2))));
  ASSERT_EQ(run({"--list", "/list", "--apply"}), kExitDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("nothing to do"));
  ok(disk.remove("/db/writer.chk"));  // the former node is gone
  ok(write_file_durably(*restored, "/list", list));
  std::ostringstream said;
  SeededRandom random(4);
  ToolContext tool{*restored, system_clock(), random, null_log(), said, err};
  const char* arguments[] = {"verger-db", "redact", "/db",     "--assume-stopped",
                             "--list",    "/list",  "--apply", "--prove"};
  ASSERT_EQ(run_program(8, arguments, tool), kExitDone) << said.str() << err.str();
  EXPECT_THAT(said.str(), HasSubstr("proof: clean"));
}

TEST_F(Redact, SaysWhatIsWrongWithTheCommand) {
  EXPECT_EQ(run({}), kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("which events?"));
  EXPECT_EQ(run({"--events", "customer-7@1"}), kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("give NUMBER@STREAM"));
  EXPECT_EQ(run({"--events", "1@customer-7", "--list", "/list"}), kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("needs --append or --apply"));
  EXPECT_EQ(run({"--list", "/list", "--apply"}), kExitUsage);
  EXPECT_EQ(run({"--events", "9@customer-7"}), kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("--skip-missing"));
}

}  // namespace
}  // namespace verger::tool
