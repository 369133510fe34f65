#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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
    // The default when these hashes were computed.
    cases.back().policy.limits.election_settle_ms = 10'000;
    return cases.back();
  };
  add("three", 3, "86f716850fc1ead420ed1772d32e744c3999b19ad2a8dc092cae6b14b5d8591c");
  {
    auto& one = add("points, an unfinished scavenge, other priorities", 5,
                    "2d4a9b1cfa1a743ce0d94f18926b0f428f28e24c2c840b39c5c0c2eb1f39e71f");
    testing::with_points(one.snapshot, 2, {2, 1, 0, -1, 2});
    one.snapshot.nodes[3].agent->unfinished = Unfinished{testing::point(1), "ExecutingChunks"};
    one.snapshot.nodes[1].priority = 7;
    one.snapshot.nodes[2].priority = -3;
    scavenge_of(one.policy).foreign = ForeignRule::kAdopt;
  }
  {
    auto& one = add("all at once, with replicas, \"quoted\\\n", 3,
                    "c8b04291c2039df63fa46b0f72f954ba4ab8b5012c842d38ce4c1a26bdc06482");
    one.snapshot.cluster = "a \"cluster\"\\\n\x01";
    for (int i = 4; i < 7; ++i) {
      one.snapshot.nodes.push_back(testing::node(i, Role::kReadOnlyReplica));
    }
    scavenge_of(one.policy).strategy = Strategy::kConcurrent;
    scavenge_of(one.policy).read_only_replicas = ReplicaRule::kInclude;
    scavenge_of(one.policy).replica_threads = 2;
  }
  {
    auto& one =
        add("offline", 5, "bff4cf1268768f31b5c58bb32d56506f071ba8868c58d32d6300b36a3adbfb6b");
    for (auto& node : one.snapshot.nodes) {
      node.agent->service_control = true;
    }
    scavenge_of(one.policy).strategy = Strategy::kOffline;
  }
  {
    auto& one = add("followers only, without agents", 3,
                    "c765c7e8be8c1bfe183371e4361fe64916877bad99778ee39eb390a5c18c6e6f");
    testing::without_agents(one.snapshot);
    scavenge_of(one.policy).strategy = Strategy::kFollowersOnly;
  }
  {
    auto& one = add("with certificates and queries", 3,
                    "1545059de6bead5a0de79941a15731a0f733a7afa9241f73f9bc3523c4b8bb28");
    for (auto& node : one.snapshot.nodes) {
      node.url = "https://" + node.name + ":2113";
      node.certificates = {{"0a:0b", "node", Ticks(kMaxTicks)}, {"0c", "agent", Ticks(kMaxTicks)}};
    }
    one.policy.gates.queries = {
        {.name = "load", .url = "http://p", .query = "up{a=\"b\"}", .at_least = {}, .at_most = {}}};
    one.snapshot.queries = {
        {.name = "load", .value = "1", .limit = {}, .problem = {}, .holds = true}};
    scavenge_of(one.policy).leader = LeaderRule::kInPlace;
  }
  add("one node", 1, "196d1cdc17890a4a36a0f1e9d53d455db80a27e4fdf0ec8ac301bf16772b3132");
  add("very many", 201, "fe85dc8bb2a414fa42153a91cf0f0ab305f00bb746e06643e8247548e9cc7f30");
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

/// What the hash does not cover.
const char* const kNotHashed[] = {"forecast", "hash", "madeAt", "notes"};

TEST(PlanText, IsCanonicalAndHoldsWhatIsHashed) {
  for (const auto& one : hash_cases()) {
    SCOPED_TRACE(one.name);
    auto plan = make_plan(one.snapshot, one.policy);
    ASSERT_TRUE(plan) << plan.error().front().message;
    plan->notes.emplace_back("a \"note\"");
    const auto text = text_of(*plan);
    auto read = nlohmann::json::parse(text);
    EXPECT_EQ(read.dump(), text) << "members are out of order";
    EXPECT_EQ(read["notes"].back(), "a \"note\"");
    EXPECT_EQ(read["hash"], one.hash);
    for (const auto* member : kNotHashed) {
      EXPECT_EQ(read.erase(member), 1U) << member;
    }
    for (auto& stage : read["stages"]) {
      for (auto& group : stage["groups"]) {
        for (auto& step : group) {
          EXPECT_EQ(step.erase("expected"), 1U) << step["id"];
        }
      }
    }
    EXPECT_EQ(read.dump(), hashed_text(*plan));
  }
}

TEST(PlanText, NamesTheSizesOfAForecastThatKnowsThem) {
  auto snapshot = cluster(1);
  snapshot.nodes.front().agent->database_bytes = 5;
  snapshot.nodes.front().agent->disk_free = 7'000'000'000;
  auto plan = make_plan(snapshot, Policy{});
  ASSERT_TRUE(plan) << plan.error().front().message;
  ASSERT_EQ(plan->forecast.size(), 1U);
  const auto forecast = [&] { return nlohmann::json::parse(text_of(*plan))["forecast"][0]; };
  EXPECT_EQ(forecast()["databaseBytes"], 5);
  EXPECT_EQ(forecast()["diskFree"], 7'000'000'000);
  EXPECT_EQ(forecast()["diskNeeded"], plan->forecast.front().disk_needed);
  EXPECT_EQ(forecast()["node"], "n1");
  plan->forecast.front().disk_free = -1;
  EXPECT_EQ(forecast().size(), 2U) << forecast();
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
