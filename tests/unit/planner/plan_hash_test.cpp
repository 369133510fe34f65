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
  add("three", 3, "58adb2bc966de7c37cb07729dcb56e9fb9548b7339d3ad6897aa1073a4018ff4");
  {
    auto& one = add("points, an unfinished scavenge, other priorities", 5,
                    "bba4acc1552a329b38a55d4b6abaf4ee1eb0bc4297f7df1c6efd1e1c882f3a21");
    testing::with_points(one.snapshot, 2, {2, 1, 0, -1, 2});
    one.snapshot.nodes[3].agent->unfinished = Unfinished{testing::point(1), "ExecutingChunks"};
    one.snapshot.nodes[1].priority = 7;
    one.snapshot.nodes[2].priority = -3;
    one.policy.scavenge.foreign = ForeignRule::kAdopt;
  }
  {
    auto& one = add("all at once, with replicas, \"quoted\\\n", 3,
                    "9e8a34c3627827c8be462be8be81eb7d4d2f095cd8a02b1320f8b930fe3f13ba");
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
        add("offline", 5, "c6204c869330ef46a4e46e86abb18d964ad09e4a9312a91b4a5e435b2c7b8b88");
    for (auto& node : one.snapshot.nodes) {
      node.agent->service_control = true;
    }
    one.policy.scavenge.strategy = Strategy::kOffline;
  }
  {
    auto& one = add("followers only, without agents", 3,
                    "22480b5df5a301fc34f0fd6d5b4d69781d85268769c0c92331c2eb84b75508a5");
    testing::without_agents(one.snapshot);
    one.policy.scavenge.strategy = Strategy::kFollowersOnly;
  }
  {
    auto& one = add("with certificates and queries", 3,
                    "bc141346b20611745a929df98946d222c559c688aded63e72938d781098b8737");
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
  add("one node", 1, "25e4c35e3943ba1b2b93550c95d4fb610ef74d164b16f4edf8c9155826e64f5c");
  add("very many", 201, "924658550fba4462642a7d29acdabf6958028d03817e21ad8a8e7aff2978c194");
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
