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
  add("three", 3, "2a6e71d410dca650449ca4dd8eeda16ebaf531be6380c3654d3c15c09cba26a5");
  {
    auto& one = add("points, an unfinished scavenge, other priorities", 5,
                    "82fc6331a4fc6610c164adf79b05d5a56aee1091779b5bcc66c2f8f63a56d48a");
    testing::with_points(one.snapshot, 2, {2, 1, 0, -1, 2});
    one.snapshot.nodes[3].agent->unfinished = Unfinished{testing::point(1), "ExecutingChunks"};
    one.snapshot.nodes[1].priority = 7;
    one.snapshot.nodes[2].priority = -3;
    scavenge_of(one.policy).foreign = ForeignRule::kAdopt;
  }
  {
    auto& one = add("all at once, with replicas, \"quoted\\\n", 3,
                    "e04c5469da3e0792f676cc6c2a28390c314727db42b565792558856de4846363");
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
        add("offline", 5, "51c29fb16814a4543459f796fe51cbaf0a94704f3a6d7eb724d089b5183f53fe");
    for (auto& node : one.snapshot.nodes) {
      node.agent->service_control = true;
    }
    scavenge_of(one.policy).strategy = Strategy::kOffline;
  }
  {
    auto& one = add("followers only, without agents", 3,
                    "bb65c614b92a434078583d4b10f63cabcd6f8636c35af3cc9d0802848627e731");
    testing::without_agents(one.snapshot);
    scavenge_of(one.policy).strategy = Strategy::kFollowersOnly;
  }
  {
    auto& one = add("with certificates and queries", 3,
                    "6dc26ce6d6d217133bc092ba5fcbfe563664917606cf6680f4a2311c5b34c04a");
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
  add("one node", 1, "7faa216346ddfb0bdb43ef2b48bc66b0963f0d2d2174c74bbac77657ceb9725b");
  add("very many", 201, "50d0bf75b8757bf56bce6c7b4edf50aceaf44077e4ca6a77198f14a75d85b151");
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
