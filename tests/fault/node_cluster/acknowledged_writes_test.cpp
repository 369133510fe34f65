// Random crashes with power cuts, partitions, lost and doubled messages, slow disks, pauses: what
// was acknowledged is on every node in the end, and all nodes have the same log.
#include <gtest/gtest.h>
#include <set>

#include <nlohmann/json.hpp>

#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

struct Tally {
  std::size_t acknowledged = 0;
  std::size_t refused = 0;
  std::uint64_t crashes = 0;
  std::uint64_t lost = 0;
  std::uint64_t scavenges = 0;
  std::uint64_t slow_syncs = 0;
  std::uint64_t pauses = 0;
  std::size_t epochs = 0;
};

class FaultRun {
 public:
  explicit FaultRun(std::uint64_t seed) : world_(seed), cluster_(world_) {}

  void go(Tally& tally) {
    cluster_.boot_all();
    ASSERT_TRUE(cluster_.run_until_settled());
    world_.faults.lose_request = 20;
    world_.faults.lose_response = 20;
    world_.faults.duplicate_request = 20;
    world_.faults.long_delay = 30;
    world_.faults.longest_delay = 100ms;
    world_.faults.break_link = 2;
    for (int i = 0; i < 120; ++i) {
      misfortune(tally);
      write(tally, i);
    }
    world_.faults = {};
    world_.heal();
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
      cluster_.slow_disk(i, 0ms);
      if (!cluster_.host(i).up()) {
        boot(i);
      }
    }
    ASSERT_TRUE(cluster_.run_until_level(20s)) << "the cluster does not find together again";
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
      check(i);
    }
    tally.crashes += world_.counts.crashes;
    tally.lost += world_.counts.requests_lost + world_.counts.responses_lost;
    tally.slow_syncs += cluster_.slow_syncs();
    tally.epochs +=
        static_cast<std::size_t>(cluster_.node(0)->inspection().positions().epoch_number.value());
  }

 private:
  void boot(std::size_t i) {
    const auto booted = cluster_.boot(i);
    ASSERT_TRUE(booted.has_value()) << "n" << i + 1 << ": " << booted.error().message;
  }

  void misfortune(Tally& tally) {
    auto& random = world_.random();
    const auto i = static_cast<std::size_t>(random.below(3));
    const auto dice = random.below(100);
    if (dice < 6 && cluster_.host(i).up()) {
      cluster_.crash(i, random.below(2) == 0);
    } else if (dice < 20 && !cluster_.host(i).up()) {
      boot(i);
    } else if (dice < 24) {
      world_.cut("n" + std::to_string(i + 1), "n" + std::to_string((i + 1) % 3 + 1));
    } else if (dice < 32) {
      world_.heal();
    } else if (dice < 34 && cluster_.host(i).up()) {
      static_cast<void>(cluster_.post(i, "/admin/node/resign"));
    } else if (dice < 37 && cluster_.host(i).up()) {
      const auto answer = cluster_.post(i, "/admin/scavenge");
      tally.scavenges += answer && answer->status == 200 ? 1 : 0;
    } else if (dice < 40) {
      cluster_.slow_disk(i, std::chrono::milliseconds(10 + random.below(200)));
    } else if (dice < 46) {
      cluster_.slow_disk(i, 0ms);
    } else if (dice < 48 && cluster_.host(i).up()) {
      cluster_.host(i).stay_busy(std::chrono::milliseconds(50 + random.below(1000)));
      ++tally.pauses;
    }
    world_.run_for(std::chrono::milliseconds(random.below(60)));
  }

  void write(Tally& tally, int i) {
    const auto node = static_cast<std::size_t>(world_.random().below(3));
    if (!cluster_.host(node).up()) {
      return;
    }
    const auto name = "event-" + std::to_string(i);
    const std::string padding(world_.random().below(3000), 'x');
    if (cluster_.append(node, "s" + std::to_string(i % 5), "\"" + name + " " + padding + "\"") ==
        201) {
      expected_.insert(name);
      ++tally.acknowledged;
    } else {
      ++tally.refused;
    }
  }

  void check(std::size_t node) {
    std::set<std::string> found;
    for (int s = 0; s < 5; ++s) {
      const auto page =
          cluster_.get(node, "/streams/s" + std::to_string(s) + "/head/backward/1000?embed=body");
      ASSERT_TRUE(page.has_value());
      if (page->status != 200) {
        continue;
      }
      for (const auto& entry : json::parse(page->body)["entries"]) {
        const auto text = json::parse(entry["data"].get<std::string>()).get<std::string>();
        found.insert(text.substr(0, text.find(' ')));
      }
    }
    for (const auto& name : expected_) {
      EXPECT_TRUE(found.contains(name))
          << name << " was acknowledged and is not on node " << node + 1;
    }
  }

  SimWorld world_;
  NodeCluster cluster_;
  std::set<std::string> expected_;
};

TEST(AcknowledgedWrites, SurviveCrashesPartitionsAndLostMessages) {
  const auto* one = std::getenv("VERGER_SEED");
  const std::uint64_t first = one != nullptr ? std::stoull(one) : 1;
  const std::uint64_t last = one != nullptr ? first : 40;
  Tally tally;
  for (auto seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE("VERGER_SEED=" + std::to_string(seed));
    FaultRun(seed).go(tally);
  }
  std::printf(
      "%zu acknowledged, %zu not, %llu crashes, %llu messages lost, %llu scavenges, "
      "%llu slow syncs, %llu pauses, %zu epochs\n",
      tally.acknowledged, tally.refused, static_cast<unsigned long long>(tally.crashes),
      static_cast<unsigned long long>(tally.lost), static_cast<unsigned long long>(tally.scavenges),
      static_cast<unsigned long long>(tally.slow_syncs),
      static_cast<unsigned long long>(tally.pauses), tally.epochs);
  if (one == nullptr && !HasFailure()) {
    EXPECT_GT(tally.acknowledged, 1000U);
    EXPECT_GT(tally.crashes, 100U);
    EXPECT_GT(tally.lost, 100U);
    EXPECT_GT(tally.scavenges, 20U);
    EXPECT_GT(tally.slow_syncs, 1000U);
    EXPECT_GT(tally.pauses, 50U);
    EXPECT_GT(tally.epochs, 100U);
  }
}

}  // namespace
}  // namespace verger::testing
