#include "engine/base/slow_file_system.h"

#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"

namespace verger {
namespace {

TEST(SlowFileSystem, WaitsBeforeEachSyncOnly) {
  MemoryFileSystem disk;
  int waits = 0;
  SlowFileSystem slow(disk, [&] { ++waits; });
  ASSERT_TRUE(slow.make_directories("/d"));
  auto file = slow.open("/d/a", OpenMode::kCreateNew).value();
  ASSERT_TRUE(file->write_at(0, as_bytes("abc")));
  ASSERT_TRUE(file->resize(2));
  ASSERT_TRUE(slow.rename("/d/a", "/d/b"));
  EXPECT_EQ(waits, 0);
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(waits, 1);
  ASSERT_TRUE(slow.sync_directory("/d"));
  ASSERT_TRUE(slow.sync_directory("/"));
  EXPECT_EQ(waits, 3);
  file.reset();
  disk.cut_power();
  EXPECT_EQ(as_text(read_file(slow, "/d/b").value()), "ab");
  EXPECT_EQ(waits, 3);
}

TEST(SlowFileSystem, TellsTheErrorsOfTheDiskBelow) {
  MemoryFileSystem disk;
  SlowFileSystem slow(disk, [] {});
  EXPECT_EQ(slow.open("/none", OpenMode::kRead).error().code, Errc::kNotFound);
  auto file = slow.open("/a", OpenMode::kCreate).value();
  disk.set_fault_hook([](const DiskOperation& operation) -> std::optional<Error> {
    return operation.kind == "sync" ? std::optional(Error{Errc::kIo, "broken"}) : std::nullopt;
  });
  EXPECT_EQ(file->sync().error().code, Errc::kIo);
}

}  // namespace
}  // namespace verger
