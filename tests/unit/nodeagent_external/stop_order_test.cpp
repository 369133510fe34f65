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
  EXPECT_TRUE(order.give("operation o1", StopOrder::Server::kMayRun));
  EXPECT_TRUE(order.give("operation o2", StopOrder::Server::kStopped));
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
  EXPECT_FALSE(order.give("operation o1", StopOrder::Server::kStopped));
  disk.set_fault_hook({});
  EXPECT_EQ(order.given_by(), "");
}

TEST(StopOrder, KnowsWhetherItsServerHasStopped) {
  MemoryFileSystem disk;
  for (const Path& file : {Path("/state/server-kept-stopped"), Path()}) {
    StopOrder order(disk, file);
    EXPECT_FALSE(order.is_of_stopped_server()) << "there is none";
    ok(order.give("operation o1", StopOrder::Server::kMayRun));
    EXPECT_FALSE(order.is_of_stopped_server());
    ok(order.note_stopped());
    EXPECT_EQ(order.given_by(), "operation o1");
    EXPECT_TRUE(order.is_of_stopped_server());
    ok(order.give("operation o2", StopOrder::Server::kStopped));
    EXPECT_TRUE(order.is_of_stopped_server());
    ok(order.lift());
    ok(order.note_stopped());
    EXPECT_EQ(order.given_by(), "");
  }
}

TEST(StopOrder, OfAFormerVersionIsOfAStoppedServer) {
  MemoryFileSystem disk;
  ok(disk.make_directories("/state"));
  ok(write_file_durably(disk, "/state/server-kept-stopped", as_bytes("operation o1\ni1\n")));
  const StopOrder order(disk, "/state/server-kept-stopped");
  EXPECT_EQ(order.given_by(), "operation o1");
  EXPECT_TRUE(order.is_of_stopped_server());
}

TEST(StopOrder, ThatCannotBeReadCounts) {
  MemoryFileSystem disk;
  ok(disk.make_directories("/state/server-kept-stopped"));
  EXPECT_THAT(StopOrder(disk, "/state/server-kept-stopped").given_by(),
              HasSubstr("/state/server-kept-stopped"));
}

}  // namespace
}  // namespace verger::external
