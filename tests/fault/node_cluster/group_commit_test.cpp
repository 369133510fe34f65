// Appends that arrive together share the syncs of leader and followers.
#include <algorithm>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "nodeagent/node/node.h"
#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;

class GroupCommit : public ::testing::Test {
 protected:
  GroupCommit() : world_(3), cluster_(world_) { cluster_.boot_all(); }

  /// So many clients append an event each, at once; the answers' statuses.
  std::vector<int> append_at_once(std::size_t leader, int clients) {
    auto statuses = std::make_shared<std::vector<int>>();
    auto& client = world_.host("client");
    for (int i = 0; i < clients; ++i) {
      http::Request request{
          .method = "POST", .target = "/streams/s" + std::to_string(i), .body = "{}"};
      request.headers.set("Content-Type", "application/json");
      request.headers.set("ES-EventType", "e");
      request.headers.set("ES-EventId", world_.random().uuid().to_string());
      net::co_spawn(
          client.executor(),
          [](http::Client& http, http::Endpoint to, http::Request what,
             std::shared_ptr<std::vector<int>> into)
              -> net::awaitable<void> {
            const auto answer = co_await http.send(to, std::move(what), 60s);
            into->push_back(answer ? answer->status : 0);
          }(client.client(),
              http::Endpoint{false, "n" + std::to_string(leader + 1), NodeCluster::kHttpPort},
              std::move(request), statuses),
          net::detached);
    }
    world_.run_until([&] { return statuses->size() == static_cast<std::size_t>(clients); }, 60s);
    return *statuses;
  }

  SimWorld world_;
  NodeCluster cluster_;
};

TEST_F(GroupCommit, AHundredAppendsTakeFewSyncs) {
  ASSERT_TRUE(cluster_.run_until_settled());
  const auto leader = *cluster_.leader();
  ASSERT_TRUE(cluster_.run_until_level());
  for (std::size_t i = 0; i < 3; ++i) {
    cluster_.slow_disk(i, 2ms);
  }
  const auto before = cluster_.slow_syncs();
  EXPECT_EQ(append_at_once(leader, 100), std::vector<int>(100, 201));
  EXPECT_TRUE(cluster_.run_until_level());
  // Alone, each takes two syncs on each of the three nodes.
  EXPECT_LT(cluster_.slow_syncs() - before, 100U);
}

TEST_F(GroupCommit, ALeaderThatDiesInAFlushHasAcknowledgedNothingOfIt) {
  ASSERT_TRUE(cluster_.run_until_settled());
  const auto leader = *cluster_.leader();
  cluster_.slow_disk(leader, 50ms);
  world_.schedule(20ms, [&] { cluster_.crash(leader); });
  const auto statuses = append_at_once(leader, 20);
  const auto acknowledged = std::ranges::count(statuses, 201);
  ASSERT_TRUE(world_.run_until([&] { return cluster_.leader().has_value(); }, 30s));
  ASSERT_TRUE(cluster_.boot(leader).has_value());
  ASSERT_TRUE(cluster_.run_until_level(30s));
  int found = 0;
  for (int i = 0; i < 20; ++i) {
    const auto answer = cluster_.get(leader, "/streams/s" + std::to_string(i) + "/0");
    found += answer && answer->status == 200 ? 1 : 0;
  }
  EXPECT_GE(found, acknowledged);
}

}  // namespace
}  // namespace verger::testing
