// A follower that returns with a part of what its leader has scavenged meanwhile takes the leader's
// chunk in its place. It dies at any disk operation of that: what it had acknowledged is still
// there when it starts alone, and it catches up when the others are back.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;

void must(bool condition, const char* what) {
  if (!condition) {
    throw std::runtime_error(what);
  }
}

/// What all runs begin with: the disks of three nodes, all switched off.
struct Beginning {
  std::vector<std::unique_ptr<MemoryFileSystem>> disks;
  std::size_t lagging = 0;
  LogPosition acknowledged{0};
};

Beginning prepare() {
  Beginning beginning;
  SimWorld world(3);
  NodeCluster cluster(world);
  cluster.boot_all();
  must(cluster.run_until_settled(), "settled");
  must(cluster.fill_with_limited_streams(3, 10), "filled");
  must(cluster.run_until_level(), "level");
  beginning.lagging = (*cluster.leader() + 1) % 3;
  beginning.acknowledged = cluster.node(beginning.lagging)->inspection().positions().writer;
  cluster.crash(beginning.lagging, false);
  must(cluster.run_until_settled(), "two settled");
  must(cluster.fill_with_limited_streams(8, 12), "filled");
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != beginning.lagging) {
      const auto started = cluster.post(i, "/admin/scavenge");
      must(started && started->status == 200, "scavenge");
      must(world.run_until(
               [&] { return !cluster.node(i)->inspection().running_scavenge().has_value(); }, 30s),
           "scavenged");
    }
  }
  must(world.run_until([&] { return cluster.settled(); }, 5s), "settled again");
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != beginning.lagging) {
      cluster.crash(i, false);
    }
    beginning.disks.push_back(cluster.host(i).disk().clone());
  }
  return beginning;
}

/// False when the switch has no operation `nth`.
bool survives(const Beginning& beginning, std::uint64_t nth, bool power) {
  SimWorld world(100 + nth);
  NodeCluster cluster(world);
  for (std::size_t i = 0; i < 3; ++i) {
    cluster.host(i).set_disk(beginning.disks[i]->clone());
  }
  const auto me = beginning.lagging;
  cluster.boot_all();
  auto& host = cluster.host(me);
  bool begun = false;
  bool struck = false;
  std::uint64_t count = 0;
  host.disk().set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
    begun = begun || operation.path.filename().string().starts_with("replicated-");
    if (struck || !begun) {
      return std::nullopt;
    }
    if (count++ != nth) {
      return std::nullopt;
    }
    struck = true;
    host.die(power, power ? std::optional(nth + 1) : std::nullopt);
    return Error{Errc::kIo, "the process dies here"};
  });
  world.run_until([&] { return struck || cluster.level(); }, 30s);
  if (!struck) {
    EXPECT_TRUE(begun) << "no chunk was received whole";
    return false;
  }
  world.run_for(1ms);
  host.disk().set_fault_hook(nullptr);
  world.isolate("n" + std::to_string(me + 1));
  const auto booted = cluster.boot(me);
  EXPECT_TRUE(booted.has_value()) << booted.error().message;
  if (!booted) {
    return false;
  }
  EXPECT_GE(cluster.node(me)->inspection().positions().writer, beginning.acknowledged);
  world.heal();
  EXPECT_TRUE(cluster.run_until_level(30s));
  const auto page = cluster.get(me, "/streams/s1/head/backward/20");
  EXPECT_TRUE(page && page->status == 200);
  if (page && page->status == 200) {
    EXPECT_EQ(nlohmann::json::parse(page->body)["entries"].size(), 2U);
  }
  return true;
}

class ChunkSwitch : public ::testing::TestWithParam<bool> {};

TEST_P(ChunkSwitch, ACrashAtAnyDiskOperationLosesNothingAcknowledged) {
  const auto beginning = prepare();
  // The first operations write the received file; the last ones index what follows.
  std::uint64_t nth = 0;
  for (; nth < 40 && !HasFailure(); ++nth) {
    SCOPED_TRACE("operation " + std::to_string(nth));
    if (!survives(beginning, nth, GetParam())) {
      break;
    }
  }
  EXPECT_GT(nth, 8U);
}

INSTANTIATE_TEST_SUITE_P(Crash, ChunkSwitch, ::testing::Bool(), [](const auto& info) {
  return info.param ? "PowerCut" : "ProcessKilled";
});

}  // namespace
}  // namespace verger::testing
