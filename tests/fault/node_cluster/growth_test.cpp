// A cluster of three becomes one of five while writes continue: from then on two followers confirm
// each write. What was acknowledged before, in between and afterwards is on all five.
#include <gtest/gtest.h>
#include <set>

#include <nlohmann/json.hpp>

#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr std::size_t kOld = 3;
constexpr std::size_t kAll = 5;

NodeClusterOptions five() {
  NodeClusterOptions options;
  options.voters = kAll;
  return options;
}

class Growth : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Growth() : world_(GetParam()), cluster_(world_, five()) {
    for (std::size_t i = 0; i < kAll; ++i) {
      all_seeds_.push_back(cluster_.options(i).gossip_seeds);
    }
    // As they were configured before five were planned.
    for (std::size_t i = 0; i < kOld; ++i) {
      cluster_.options(i).cluster_size = kOld;
      std::erase_if(cluster_.options(i).gossip_seeds, [](const http::Endpoint& seed) {
        return seed.host == "n4" || seed.host == "n5";
      });
    }
  }
  void boot(std::size_t i) {
    const auto booted = cluster_.boot(i);
    ASSERT_TRUE(booted.has_value()) << "n" << i + 1 << ": " << booted.error().message;
  }
  /// Appends by way of the node; what is acknowledged is remembered.
  bool write(std::size_t by) {
    const auto name = "event-" + std::to_string(written_++);
    const std::string padding(world_.random().below(2000), 'x');
    if (cluster_.append(by, "ledger", "\"" + name + " " + padding + "\"") != 201) {
      return false;
    }
    acknowledged_.insert(name);
    return true;
  }
  /// Some node that is up takes a write within the time.
  bool write_somewhere() {
    for (int i = 0; i < 100; ++i) {
      const auto by = static_cast<std::size_t>(world_.random().below(kAll));
      if (cluster_.host(by).up() && write(by)) {
        return true;
      }
      world_.run_for(50ms);
    }
    return false;
  }
  std::set<std::string> found_on(std::size_t i) {
    std::set<std::string> found;
    const auto page = cluster_.get(i, "/streams/ledger/head/backward/4000?embed=body");
    if (page && page->status == 200) {
      for (const auto& entry : json::parse(page->body)["entries"]) {
        const auto text = json::parse(entry["data"].get<std::string>()).get<std::string>();
        found.insert(text.substr(0, text.find(' ')));
      }
    }
    return found;
  }
  void grow() {
    for (std::size_t i = 0; i < kOld; ++i) {
      boot(i);
    }
    ASSERT_TRUE(cluster_.run_until_settled());
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(write_somewhere());
    }
    // Every old node gets the new configuration, one after the other, the leader last. The first
    // one waits, while the others run; from the second on none confirms a write until all three
    // count to five.
    const auto last = *cluster_.leader();
    std::vector<std::size_t> order{0, 1, 2};
    std::erase(order, last);
    order.push_back(last);
    for (const auto i : order) {
      cluster_.crash(i, /*power=*/false);
      reconfigure(i);
      boot(i);
      if (i == order.front()) {
        if (new_ones_too_early_) {
          // With them the one that waits is a majority of five beside the majority of three.
          boot(3);
          boot(4);
        }
        for (int n = 0; n < 10; ++n) {
          ASSERT_TRUE(write_somewhere()) << "with n" << i + 1 << " counting to five";
          // In a moment without a leader the larger number could find together; but a node that
          // gets a request hears of the two, whose log is newer.
          if (const auto leader = cluster_.leader(); leader && new_ones_too_early_) {
            ASSERT_TRUE(cluster_.post(*leader, "/admin/node/resign").has_value());
          }
          for (int look = 0; look < 20; ++look) {
            world_.run_for(10ms);
            ASSERT_LE(leaders(), 1);
          }
        }
        if (new_ones_too_early_) {
          cluster_.crash(3);
          cluster_.crash(4);
        }
      }
    }
    ASSERT_TRUE(cluster_.run_until_settled(20s)) << "three of five";
    ASSERT_TRUE(write_somewhere());
    for (const auto i : {3U, 4U}) {
      boot(i);
    }
    ASSERT_TRUE(cluster_.run_until_level(20s)) << "with the new ones";
    ASSERT_TRUE(write_somewhere());
    ASSERT_TRUE(cluster_.run_until_level(20s));
  }
  void reconfigure(std::size_t i) {
    cluster_.options(i).cluster_size = kAll;
    cluster_.options(i).gossip_seeds = all_seeds_[i];
  }
  int leaders() {
    int count = 0;
    for (std::size_t i = 0; i < kAll; ++i) {
      count += cluster_.host(i).up() && cluster_.node(i) != nullptr &&
                       cluster_.node(i)->inspection().state() == api::NodeState::kLeader
                   ? 1
                   : 0;
    }
    return count;
  }
  void expect_all_acknowledged_everywhere() {
    for (std::size_t i = 0; i < kAll; ++i) {
      const auto found = found_on(i);
      for (const auto& name : acknowledged_) {
        EXPECT_TRUE(found.contains(name)) << name << " is not on n" << i + 1;
      }
    }
  }

  SimWorld world_;
  NodeCluster cluster_;
  std::vector<std::vector<http::Endpoint>> all_seeds_;
  std::set<std::string> acknowledged_;
  int written_ = 0;
  bool new_ones_too_early_ = false;
};

TEST_P(Growth, FromThreeToFiveNothingAcknowledgedIsLost) {
  grow();
  expect_all_acknowledged_everywhere();
}

TEST_P(Growth, NewNodesThatComeTooEarlyElectNoLeaderBesideTheOldOne) {
  new_ones_too_early_ = true;
  grow();
  expect_all_acknowledged_everywhere();
}

TEST_P(Growth, AfterwardsTwoFollowersConfirmEachWrite) {
  grow();
  const auto leader = *cluster_.leader();
  const auto name = [](std::size_t i) { return "n" + std::to_string(i + 1); };
  std::vector<std::size_t> followers;
  for (std::size_t i = 0; i < kAll; ++i) {
    if (i != leader) {
      followers.push_back(i);
    }
  }
  // Two of five away: the leader and two followers still are a majority.
  cluster_.crash(followers[0]);
  cluster_.crash(followers[1]);
  ASSERT_TRUE(write_somewhere());
  // One follower alone does not confirm a write, as it would have done among three.
  world_.isolate(name(followers[2]));
  const auto before = acknowledged_.size();
  EXPECT_FALSE(write(leader));
  EXPECT_EQ(acknowledged_.size(), before);
  EXPECT_EQ(cluster_.get(leader, "/streams/ledger/" + std::to_string(before))->status, 404)
      << "nor does anybody see it";
  world_.heal();
  boot(followers[0]);
  boot(followers[1]);
  ASSERT_TRUE(cluster_.run_until_level(20s));
  ASSERT_TRUE(write_somewhere());
  // Any two may die at once.
  ASSERT_TRUE(cluster_.run_until_level(20s));
  cluster_.crash(*cluster_.leader());
  cluster_.crash(followers[static_cast<std::size_t>(world_.random().below(4))]);
  ASSERT_TRUE(write_somewhere());
  for (std::size_t i = 0; i < kAll; ++i) {
    if (!cluster_.host(i).up()) {
      boot(i);
    }
  }
  ASSERT_TRUE(cluster_.run_until_level(20s));
  expect_all_acknowledged_everywhere();
}

INSTANTIATE_TEST_SUITE_P(Seeds, Growth, ::testing::Range<std::uint64_t>(1, 4));

}  // namespace
}  // namespace verger::testing
