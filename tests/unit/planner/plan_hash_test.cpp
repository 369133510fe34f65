#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using testing::cluster;

struct HashCase {
  std::string name;
  ClusterSnapshot snapshot;
  Policy policy;
  std::string hash;
};

std::vector<HashCase> hash_cases() {
  std::vector<HashCase> cases;
  const auto add = [&](std::string name, int voters, std::string hash) -> HashCase& {
    cases.push_back({std::move(name), cluster(voters), {}, std::move(hash)});
    return cases.back();
  };
  add("three", 3, "3ad9d4f5bbd05beaea92f4231026071465ef4e074a8b6889c8b73039c31837fc");
  {
    auto& one = add("points, an unfinished scavenge, other priorities", 5,
                    "d479af3b5aa13e324cb8263feff87b99d4245c17fa988e63266dc912637dbe01");
    testing::with_points(one.snapshot, 2, {2, 1, 0, -1, 2});
    one.snapshot.nodes[3].agent->unfinished = Unfinished{testing::point(1), "ExecutingChunks"};
    one.snapshot.nodes[1].priority = 7;
    one.snapshot.nodes[2].priority = -3;
    one.policy.scavenge.foreign = ForeignRule::kAdopt;
  }
  {
    auto& one = add("all at once, with replicas, \"quoted\\\n", 3,
                    "a387502a2f55755500f8080b57b74273009ad8909077df0acf88cb758ab116ab");
    one.snapshot.cluster = "a \"cluster\"\\\n\x01";
    for (int i = 4; i < 7; ++i) {
      one.snapshot.nodes.push_back(testing::node(i, Role::kReadOnlyReplica));
    }
    one.policy.scavenge.strategy = Strategy::kConcurrent;
    one.policy.scavenge.read_only_replicas = ReplicaRule::kInclude;
    one.policy.scavenge.replica_threads = 2;
  }
  {
    auto& one =
        add("offline", 5, "345561fcb099534275d0726f67ed0fbbcef873d567db50693d772f8fb767d88f");
    for (auto& node : one.snapshot.nodes) {
      node.agent->service_control = true;
    }
    one.policy.scavenge.strategy = Strategy::kOffline;
  }
  {
    auto& one = add("followers only, without agents", 3,
                    "bb65c614b92a434078583d4b10f63cabcd6f8636c35af3cc9d0802848627e731");
    testing::without_agents(one.snapshot);
    one.policy.scavenge.strategy = Strategy::kFollowersOnly;
  }
  {
    auto& one = add("with certificates and queries", 3,
                    "08c81a78578ed450fd43ceec373c246e4bdf5f73e076af778e2a170c7c7cf46d");
    for (auto& node : one.snapshot.nodes) {
      node.url = "https://" + node.name + ":2113";
      node.certificates = {{"0a:0b", "node", Ticks(kMaxTicks)}, {"0c", "agent", Ticks(kMaxTicks)}};
    }
    one.policy.scavenge.queries = {
        {.name = "load", .url = "http://p", .query = "up{a=\"b\"}", .at_least = {}, .at_most = {}}};
    one.snapshot.queries = {
        {.name = "load", .value = "1", .limit = {}, .problem = {}, .holds = true}};
    one.policy.scavenge.leader = LeaderRule::kInPlace;
  }
  add("one node", 1, "7faa216346ddfb0bdb43ef2b48bc66b0963f0d2d2174c74bbac77657ceb9725b");
  add("very many", 201, "4a9577b0851f468ae8ee253d1b4e267e399141d98db02f2544c46bf452f0b63c");
  return cases;
}

/// Plans are shown, agreed on and kept by their hashes: another one for the same input would turn
/// down what a person has approved.
TEST(PlanHash, IsWhatItWasBefore) {
  for (auto& one : hash_cases()) {
    SCOPED_TRACE(one.name);
    std::ranges::reverse(one.snapshot.nodes);
    const auto plan = make_plan(one.snapshot, one.policy);
    ASSERT_TRUE(plan) << plan.error().front().message;
    EXPECT_EQ(plan->hash, one.hash);
  }
}

TEST(PlanText, IsWhatAllOfThePlanSays) {
  for (const auto& one : hash_cases()) {
    SCOPED_TRACE(one.name);
    auto plan = make_plan(one.snapshot, one.policy);
    ASSERT_TRUE(plan) << plan.error().front().message;
    plan->notes.emplace_back("a \"note\"");
    EXPECT_EQ(text_of(*plan), to_json(*plan).text());
  }
}

TEST(PlanHash, QuotesEscapeACharacterWhereverItStands) {
  const std::string plain(25, '~');
  EXPECT_EQ(json_quoted(plain), '"' + plain + '"');
  const std::pair<char, std::string> escapes[] = {
      {'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\x1f', "\\u001f"}, {'\0', "\\u0000"}};
  for (std::size_t at = 0; at < plain.size(); ++at) {
    for (const auto& [character, escape] : escapes) {
      auto text = plain;
      text[at] = character;
      EXPECT_EQ(json_quoted(text), '"' + plain.substr(0, at) + escape + plain.substr(at + 1) + '"');
    }
  }
  EXPECT_EQ(json_quoted("\x20\x21é\x7f"), "\"\x20\x21é\x7f\"");
}

}  // namespace
}  // namespace verger::planner
