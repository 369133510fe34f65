#include "nodeagent/external/stop_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/bytes.h"
#include "engine/base/memory_file_system.h"
#include "tests/support/results.h"

namespace verger::external {
namespace {

using ::testing::HasSubstr;

TEST(StopOrder, OutlivesAPowerCutUntilItIsLifted) {
  MemoryFileSystem disk;
  StopOrder order(disk, "/state/server-kept-stopped");
  EXPECT_EQ(order.given_by(), "");
  EXPECT_TRUE(order.lift()) << "there is none";
  EXPECT_TRUE(order.give_to_running("operation o1", "i1"));
  EXPECT_TRUE(order.give("operation o2"));
  disk.cut_power();
  StopOrder next(disk, "/state/server-kept-stopped");
  EXPECT_EQ(next.given_by(), "operation o2");
  EXPECT_TRUE(next.lift());
  disk.cut_power();
  EXPECT_EQ(next.given_by(), "");
}

TEST(StopOrder, ThatCannotBeWrittenIsNotGiven) {
  MemoryFileSystem disk;
  StopOrder order(disk, "/state/server-kept-stopped");
  disk.set_fault_hook(
      [](const DiskOperation&) { return std::optional(Error{Errc::kNoSpace, "full"}); });
  EXPECT_FALSE(order.give("operation o1"));
  disk.set_fault_hook({});
  EXPECT_EQ(order.given_by(), "");
}

TEST(StopOrder, LapsesOnceAnotherInstanceRuns) {
  MemoryFileSystem disk;
  for (const Path& file : {Path("/state/server-kept-stopped"), Path()}) {
    StopOrder order(disk, file);
    EXPECT_FALSE(value(order.has_lapsed("i2"))) << "there is none";
    ok(order.give_to_running("operation o1", "i1"));
    EXPECT_EQ(order.given_by(), "operation o1");
    EXPECT_FALSE(value(order.has_lapsed("i1"))) << "it is still on its way down";
    ok(order.note_stopped());
    EXPECT_EQ(order.given_by(), "operation o1");
    EXPECT_FALSE(value(order.has_lapsed("i1"))) << "the last that was seen of it";
    EXPECT_TRUE(value(order.has_lapsed("i2")));
    ok(order.give("operation o2"));
    EXPECT_TRUE(value(order.has_lapsed("i1")));
    ok(order.lift());
    ok(order.note_stopped());
    EXPECT_EQ(order.given_by(), "");
  }
}

TEST(StopOrder, HoldsForTheServerThatIsBeingStoppedThoughItWasNotSeenBefore) {
  MemoryFileSystem disk;
  for (const auto* known : {"", "i1"}) {
    StopOrder order(disk, "/state/server-kept-stopped");
    ok(order.give_to_running("operation o1", known));
    EXPECT_FALSE(value(order.has_lapsed("i2"))) << "it runs since before the order";
    disk.cut_power();
    StopOrder next(disk, "/state/server-kept-stopped");
    ok(next.note_stopped());
    EXPECT_FALSE(value(next.has_lapsed("i2"))) << "the last that was seen of it";
    EXPECT_TRUE(value(next.has_lapsed("i3")));
  }
}

TEST(StopOrder, OfAnEarlierVersionNamesTheInstanceAlone) {
  MemoryFileSystem disk;
  ok(disk.make_directories("/state"));
  ok(write_file_durably(disk, "/state/server-kept-stopped", as_bytes("operation o1\ni1\n")));
  StopOrder order(disk, "/state/server-kept-stopped");
  EXPECT_FALSE(value(order.has_lapsed("i1")));
  EXPECT_TRUE(value(order.has_lapsed("i2")));
}

TEST(StopOrder, ThatCannotBeReadCounts) {
  MemoryFileSystem disk;
  ok(disk.make_directories("/state/server-kept-stopped"));
  EXPECT_THAT(StopOrder(disk, "/state/server-kept-stopped").given_by(),
              HasSubstr("/state/server-kept-stopped"));
}

}  // namespace
}  // namespace verger::external
