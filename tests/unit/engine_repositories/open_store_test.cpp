// From the description of a repository to its store.
#include "engine/repositories/open_store.h"

#include <gtest/gtest.h>

#include "engine/backup/key_file.h"
#include "engine/base/memory_file_system.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"

namespace verger::backup {
namespace {

class OpenStore : public ::testing::Test {
 protected:
  Result<std::unique_ptr<BlobStore>> open(const RepositoryConfig& config) {
    return open_store(disk, config, clock, random, null_log());
  }
  MemoryFileSystem disk;
  test::ManualClock clock;
  SeededRandom random{1};
};

TEST_F(OpenStore, KeepsADirectoryWhereItsLocationSays) {
  const auto store = value(open({.location = "/backup/orders"}));
  ok(store->put("repository", as_bytes("mark")));
  EXPECT_EQ(as_text(value(read_file(disk, "/backup/orders/repository"))), "mark");
  EXPECT_EQ(store->name(), "/backup/orders");
}

TEST_F(OpenStore, ChangesNothingBeforeItIsUsed) {
  value(open({.location = "/backup/orders"}));
  EXPECT_FALSE(value(disk.exists("/backup")));
}

TEST_F(OpenStore, SealsAsTheRepositoryFileSays) {
  ok(write_file_durably(disk, "/keys", as_bytes(KeyRing::make(random).to_text())));
  const auto store = value(
      open({.location = "/backup/orders", .compression = Compression::kZstd, .key_file = "/keys"}));
  ok(store->put("repository", as_bytes("mark")));
  EXPECT_EQ(as_text(value(store->get("repository"))), "mark");
  EXPECT_NE(as_text(value(read_file(disk, "/backup/orders/repository"))), "mark");
  const auto without = value(open({.location = "/backup/orders"}));
  EXPECT_EQ(without->get("repository").error().code, Errc::kUnauthorized);
}

TEST_F(OpenStore, NamesAKeyFileThatIsMissing) {
  const auto refused = open({.location = "/backup/orders", .key_file = "/none"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kNotFound);
  EXPECT_NE(refused.error().message.find("/none"), std::string::npos);
}

}  // namespace
}  // namespace verger::backup
