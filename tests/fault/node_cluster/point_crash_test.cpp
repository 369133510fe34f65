// A leader dies at any disk operation while it makes a scavenge point; after the next start the
// scavenge can be done.
#include <gtest/gtest.h>

#include "tests/support/database/database_builder.h"
#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;

NodeClusterOptions alone() {
  NodeClusterOptions options;
  options.voters = 1;
  return options;
}

/// False when making the point has no operation `nth`.
bool survives(std::uint64_t nth) {
  SimWorld world(1);
  NodeCluster cluster(world, alone());
  cluster.boot_all();
  EXPECT_TRUE(cluster.run_until_settled());
  EXPECT_EQ(cluster.append(0, "s", "{}"), 201);
  auto& host = cluster.host(0);
  bool struck = false;
  std::uint64_t count = 0;
  host.disk().set_fault_hook([&](const DiskOperation&) -> std::optional<Error> {
    if (struck || count++ != nth) {
      return std::nullopt;
    }
    struck = true;
    host.die(false);
    return Error{Errc::kIo, "the process dies here"};
  });
  static_cast<void>(cluster.post(0, "/admin/scavenge"));
  world.run_until(
      [&] {
        auto* node = cluster.node(0);
        return struck || (node != nullptr && node->inspection().last_finished_point().has_value());
      },
      20s);
  if (!struck) {
    return false;
  }
  world.run_for(1ms);
  host.disk().set_fault_hook(nullptr);
  const auto booted = cluster.boot(0);
  EXPECT_TRUE(booted.has_value()) << booted.error().message;
  if (!booted) {
    return false;
  }
  EXPECT_TRUE(cluster.run_until_settled());
  EXPECT_EQ(cluster.append(0, "s", "{}"), 201);
  const auto started = cluster.post(0, "/admin/scavenge");
  EXPECT_TRUE(started && started->status == 200);
  const auto finished = [&] { return cluster.node(0)->inspection().last_finished_point(); };
  EXPECT_TRUE(world.run_until([&] { return finished().has_value(); }, 30s))
      << "the point cannot be scavenged up to";
  return true;
}

/// As a server leaves a database that died right behind a point's record and resumed in its chunk.
void write_behind_a_point(FileSystem& files) {
  test::BuilderOptions options;
  options.chunk_size = NodeClusterOptions().node.chunk_size;
  LogPosition end;
  {
    test::DatabaseBuilder builder(files, "/data", options);
    builder.write("a");
    const auto point = builder.point();
    Bytes buffer;
    end = builder.database().transaction_log().read(point.position, buffer).value().next;
  }
  test::leave_killed_behind_point(files, "/data", end);
  test::DatabaseBuilder(files, "/data", options).write("b");
}

TEST(ScavengePoint, ThatRecordsFollowInItsChunkEndsTheRunWithAnError) {
  SimWorld world(1);
  NodeCluster cluster(world, alone());
  write_behind_a_point(cluster.host(0).disk());
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  const auto started = cluster.post(0, "/admin/scavenge");
  ASSERT_TRUE(started && started->status == 200);
  const auto& node = cluster.node(0)->inspection();
  ASSERT_TRUE(world.run_until([&] { return !node.running_scavenge().has_value(); }, 5s))
      << "it waits for ever";
  EXPECT_FALSE(node.last_finished_point().has_value());
}

TEST(ScavengePoint, CanBeReachedWhereverItsMakerDied) {
  std::uint64_t nth = 0;
  for (; nth < 120 && !HasFailure(); ++nth) {
    SCOPED_TRACE("operation " + std::to_string(nth));
    if (!survives(nth)) {
      break;
    }
  }
  EXPECT_GT(nth, 20U);
}

}  // namespace
}  // namespace verger::testing
