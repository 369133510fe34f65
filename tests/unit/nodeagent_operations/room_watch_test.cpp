// The room that is left to a running server while new chunks are written beside it.
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "nodeagent/operations/online_scavenge/online_work.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"

namespace verger::agent::beside {
namespace {

TEST(RoomWatch, EndsTheWorkBeforeTheDiskIsFull) {
  MemoryFileSystem files;
  test::ManualClock clock;
  ok(files.make_directories("/db"));
  RoomWatch room(files, clock, "/db", 10'000);
  files.set_free_space(10'000);
  EXPECT_TRUE(room.check());
  files.set_free_space(9'999);
  EXPECT_TRUE(room.check()) << "it looks once a second";
  clock.advance_seconds(1);
  const auto full = room.check();
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Errc::kNoSpace);
  EXPECT_NE(full.error().message.find("9999 bytes are free, and 10000 are left"), std::string::npos)
      << full.error().message;
}

}  // namespace
}  // namespace verger::agent::beside
