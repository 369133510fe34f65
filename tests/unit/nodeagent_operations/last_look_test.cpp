#include "nodeagent/operations/last_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nodeagent/api/agent_facts.h"
#include "nodeagent/api/node.h"
#include "planner/gate_table.h"
#include "tests/support/cluster/sim_world.h"
#include "tests/unit/nodeagent_operations/still_node.h"

namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// A node whose directory its agent may not read.
class UnlistedChunks final : public StillNode {
 public:
  node::ChunkInventory chunks() const override { return {.problem = "no right to"}; }
};

/// A node with chunks of 256 MiB, and an index whose largest table is larger.
class LargeFiles final : public StillNode {
 public:
  node::ChunkInventory chunks() const override {
    return {.largest_bytes = std::int64_t{256} << 20U, .chunk_size = std::int64_t{256} << 20U};
  }
  node::IndexInventory index_tables() const override { return tables; }
  node::IndexInventory tables;
};

/// A node on a machine of its own that answers with the gossip and the scavenge it is given.
class LastLook : public ::testing::Test {
 protected:
  LastLook() : host_(world_.add_host("n1")), asker_(world_.add_host("p")) {
    host_.boot();
    asker_.boot();
    host_.serve_http(2113, [this](http::Request request) -> net::awaitable<http::Response> {
      http::Response out;
      out.headers.set("Content-Type", "application/json");
      if (request.target.starts_with("/gossip") && asked_) {
        asked_();
      }
      out.body = request.target.starts_with("/gossip")
                     ? api::to_text(gossip_)
                     : json{{"scavengeId", running_}, {"scavengeLink", ""}}.dump();
      co_return out;
    });
    gossip_.server_ip = "10.0.0.1";
    gossip_.server_port = 2113;
    for (int i = 1; i <= 3; ++i) {
      api::GossipMember member;
      member.instance_id = fmt::format("00000000-0000-0000-0000-00000000000{}", i);
      member.state = i == 2 ? api::NodeState::kLeader : api::NodeState::kFollower;
      member.is_alive = true;
      member.http_ip = fmt::format("10.0.0.{}", i);
      member.http_port = 2113;
      member.writer_checkpoint = 1'000;
      gossip_.members.push_back(std::move(member));
    }
  }
  std::string closed(std::vector<api::GateLimit> gates, json parameters = json::object()) {
    parameters["gates"] = api::to_json(gates);
    std::optional<std::string> out;
    client_.emplace(asker_.client(), http::Endpoint{.tls = false, .host = "n1", .port = 2113},
                    std::nullopt, client::NodeDialect{}, milliseconds(500));
    asker_.spawn([](LastLook& self, std::string text,
                    std::optional<std::string>& into) -> net::awaitable<void> {
      const LocalNode node{.client = *self.client_,
                           .inspection = [&self] { return self.inspection_; },
                           .timers = self.asker_.timers(),
                           .clock = self.asker_.clock(),
                           .log = null_log()};
      into = co_await closed_gates(node, self.asker_.disk(), std::move(text));
    }(*this, parameters.dump(), out));
    EXPECT_TRUE(world_.run_until([&] { return out.has_value(); }, milliseconds(20'000)));
    return out.value_or("no answer");
  }

  testing::SimWorld world_{1};
  testing::SimHost& host_;
  testing::SimHost& asker_;
  std::optional<client::NodeClient> client_;
  api::Gossip gossip_;
  std::function<void()> asked_;  ///< for the gossip
  std::string running_;
  node::NodeInspection* inspection_ = nullptr;
};

const std::vector<api::GateLimit> kAll{
    {"voters-alive", 3}, {"quorum-margin", 2},       {"one-leader", 0},        {"lag-below", 100},
    {"not-leader", 0},   {"no-scavenge-on-node", 0}, {"maintenance-window", 0}};

TEST_F(LastLook, IsOpenWhereAllIsWellAndPassesOverWhatItDoesNotKnow) {
  EXPECT_EQ(closed(kAll), "");
  EXPECT_EQ(closed({}), "");
}

TEST_F(LastLook, SeesAVoterThatHasDiedSinceTheControllerLooked) {
  gossip_.members[2].is_alive = false;
  EXPECT_THAT(closed(kAll), HasSubstr("voters-alive: 2 voters are up and settled, 3 are needed"));
  EXPECT_THAT(closed({{"quorum-margin", 2}}), HasSubstr("voters up without it: 1, needed: 2"));
}

TEST_F(LastLook, WantsRoomForAChunkOfEachThread) {
  LargeFiles node;
  inspection_ = &node;
  asker_.disk().set_free_space(std::uint64_t{600} << 20U);
  const std::vector<api::GateLimit> gates{{"disk", 100 << 20U}};
  EXPECT_EQ(closed(gates), "");
  EXPECT_EQ(closed(gates, {{"threads", 1}}), "");
  EXPECT_THAT(closed(gates, {{"threads", 2}}),
              HasSubstr("600 MiB free, 612 MiB needed for rewriting 2 chunks side by side"));
}

TEST_F(LastLook, WantsRoomForTheIndexsLargestTableAndMerge) {
  LargeFiles node;
  node.tables = {.largest_table = std::int64_t{550} << 20U, .largest_merge = 0};
  inspection_ = &node;
  asker_.disk().set_free_space(std::uint64_t{600} << 20U);
  const std::vector<api::GateLimit> gates{{"disk", 100 << 20U}};
  EXPECT_THAT(closed(gates), HasSubstr("the largest table"));
  node.tables.largest_table = std::int64_t{100} << 20U;
  EXPECT_EQ(closed(gates), "");
  node.tables.largest_merge = std::int64_t{501} << 20U;
  EXPECT_THAT(closed(gates), HasSubstr("the largest merge"));
}

TEST_F(LastLook, IgnoresAGhostThatIsNotRegistered) {
  auto ghost = gossip_.members[2];
  ghost.instance_id = "00000000-0000-0000-0000-000000000009";
  ghost.http_ip = "10.0.0.9";
  ghost.is_alive = false;
  gossip_.members.push_back(ghost);
  EXPECT_EQ(closed(kAll), "");
}

TEST_F(LastLook, SeesThatItsNodeHasComeToLead) {
  gossip_.members[0].state = api::NodeState::kLeader;
  gossip_.members[1].state = api::NodeState::kFollower;
  EXPECT_THAT(closed({{"not-leader", 0}}), HasSubstr("it leads"));
  gossip_.members[1].state = api::NodeState::kLeader;
  EXPECT_THAT(closed({{"one-leader", 0}}), HasSubstr("2 nodes lead"));
}

TEST_F(LastLook, SeesALagAndAScavengeOfAnotherClient) {
  gossip_.members[2].writer_checkpoint = 10;
  EXPECT_THAT(closed({{"lag-below", 100}}), HasSubstr("lags 990 bytes, the limit is 100"));
  running_ = "b3b1";
  EXPECT_EQ(closed({{"no-scavenge-running", 0}}), "no-scavenge-running: scavenge b3b1 runs here");
  EXPECT_EQ(closed({{"no-scavenge-on-node", 0}}), "no-scavenge-on-node: scavenge b3b1 runs here");
  // As a controller of version 0.1 calls them.
  EXPECT_EQ(closed({{"nobody-scavenges", 0}}), "no-scavenge-running: scavenge b3b1 runs here");
  EXPECT_EQ(closed({{"idle", 0}}), "no-scavenge-on-node: scavenge b3b1 runs here");
}

/// The table is the controller's; an agent, which may be older, has its own list.
TEST(LastLooks, CheckTheGatesThatTheControllersTableSays) {
  std::vector<std::string_view> expected;
  for (const auto& entry : planner::gate_table()) {
    if (entry.by_agent) {
      expected.push_back(entry.name);
    }
  }
  EXPECT_THAT(checked_gates(), ::testing::UnorderedElementsAreArray(expected));
}

TEST_F(LastLook, TakesOldGossipUnderSteadyWritesForNoLag) {
  // Each look the leader has 50 more; the others' entries are four looks old.
  int looks = 0;
  asked_ = [&] {
    ++looks;
    gossip_.members[0].writer_checkpoint = gossip_.members[1].writer_checkpoint =
        1'000 + 50 * looks;
    gossip_.members[2].writer_checkpoint = 1'000 + 50 * (looks / 4 * 4 - 4);
  };
  EXPECT_EQ(closed({{"lag-below", 100}, {"one-leader", 0}}), "");
  EXPECT_GT(looks, 1);
  // One that stands still lags at any age.
  asked_ = [&] {
    gossip_.members[0].writer_checkpoint = gossip_.members[1].writer_checkpoint += 50;
  };
  gossip_.members[2].writer_checkpoint = 10;
  EXPECT_THAT(closed({{"lag-below", 100}}), HasSubstr("10.0.0.3:2113 lags"));
}

TEST_F(LastLook, ClosesWhereTheChunkFilesCannotBeListed) {
  UnlistedChunks node;
  inspection_ = &node;
  EXPECT_THAT(closed({{"disk", 0}}), HasSubstr("disk: the chunk files cannot be listed: no right"));
}

TEST_F(LastLook, ClosesWhereTheNodeDoesNotTellItsState) {
  gossip_.server_ip = "10.0.0.77";
  EXPECT_THAT(closed({{"one-leader", 0}}), HasSubstr("does not tell its own state"));
}

}  // namespace
}  // namespace verger::agent
