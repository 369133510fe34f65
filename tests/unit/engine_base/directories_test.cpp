#include "engine/base/directories.h"

#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"

namespace verger {
namespace {

bool survives_power_cut(MemoryFileSystem& files, const Path& directory) {
  EXPECT_TRUE(write_file_durably(files, directory / "file", as_bytes("x")));
  files.cut_power();
  return files.exists(directory / "file").value();
}

TEST(DurableDirectories, SurviveAPowerCutWithWhatIsInThem) {
  for (const char* path : {"/a", "/a/b/c", "a/b"}) {
    MemoryFileSystem files;
    ASSERT_TRUE(make_directories_durably(files, path));
    EXPECT_TRUE(survives_power_cut(files, path)) << path;
  }
}

TEST(DurableDirectories, CatchUpOnWhatAKilledProcessMade) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.make_directories("/a"));
  files.kill_process();
  ASSERT_TRUE(make_directories_durably(files, "/a"));
  EXPECT_TRUE(survives_power_cut(files, "/a"));
}

}  // namespace
}  // namespace verger
