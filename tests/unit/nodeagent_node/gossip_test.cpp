#include "nodeagent/node/gossip.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace verger::node {
namespace {

using namespace std::chrono_literals;

Member member(std::string host, std::int64_t timestamp, std::uint8_t instance = 1) {
  Member m;
  m.http = {false, std::move(host), 2113};
  m.replication = {false, m.http.host, 1112};
  m.instance.bytes[0] = static_cast<std::byte>(instance);
  m.timestamp = Ticks(timestamp);
  m.state = api::NodeState::kFollower;
  return m;
}

std::string text_of(const Member& member) {
  api::JsonWriter out;
  write(out, member);
  return out.take();
}

Result<Member> member_of(const std::string& text) {
  return parse_member(api::JsonDocument::parse(text, "member")->root());
}

TEST(MemberTable, TheNewerOfTwoEntriesCounts) {
  MemberTable table(1s);
  table.set_self(member("a", 1));
  auto old = member("b", 10);
  auto fresh = member("b", 11);
  fresh.priority = 5;
  table.merge(fresh, true, 0ms);
  table.merge(old, false, 0ms);
  EXPECT_EQ(table.find("b:2113")->priority, 5);
}

TEST(MemberTable, AClockThatIsSetBackMakesNoOldNews) {
  // The others have seen "a" an hour ahead; it is restarted, and its clock is right now.
  MemberTable other(1s);
  other.set_self(member("b", 1));
  other.merge(member("a", 3'600), true, 0ms);
  MemberTable restarted(1s);
  restarted.set_self(member("a", 10));
  restarted.merge(*other.find("a:2113"), false, 0ms);
  auto now = member("a", 11);
  now.priority = 5;
  restarted.set_self(now);
  other.merge(*restarted.find("a:2113"), true, 1ms);
  EXPECT_EQ(other.find("a:2113")->priority, 5);

  // Set back while it runs.
  now.timestamp = Ticks(2);
  now.priority = 6;
  restarted.set_self(now);
  other.merge(*restarted.find("a:2113"), true, 2ms);
  EXPECT_EQ(other.find("a:2113")->priority, 6);
}

TEST(MemberTable, ASeedIsAPlaceholderUntilItsNodeAnswers) {
  MemberTable table(1s);
  table.set_self(member("a", 1));
  table.add_seed({false, "b", 2113}, Ticks(1'000));
  EXPECT_EQ(table.find("b:2113")->state, api::NodeState::kManager);
  EXPECT_TRUE(table.voters(true).empty());
  EXPECT_EQ(table.voters(false).size(), 1U);
  table.merge(member("b", 10), true, 0ms);
  EXPECT_EQ(table.find("b:2113")->state, api::NodeState::kFollower);
  EXPECT_EQ(table.voters(true).size(), 1U);
}

TEST(MemberTable, ADeadNodeComesBackWithFreshNewsAndIsForgottenWithout) {
  MemberTable table(1s);
  table.set_self(member("a", 1));
  table.merge(member("b", 10), true, 0ms);
  table.merge(member("c", 10), true, 0ms);
  table.mark_dead("b:2113", 100ms);
  table.mark_dead("c:2113", 100ms);
  table.merge(member("b", 10), false, 200ms);
  EXPECT_FALSE(table.find("b:2113")->alive) << "old news proves nothing";
  table.merge(member("b", 11), false, 200ms);
  EXPECT_TRUE(table.find("b:2113")->alive);
  table.sweep(1200ms, Ticks(0));
  EXPECT_NE(table.find("b:2113"), nullptr);
  EXPECT_EQ(table.find("c:2113"), nullptr);
}

TEST(MemberTable, ADeadFormerLeaderIsUnknownOnceAnotherLeads) {
  MemberTable table(1s);
  table.set_self(member("a", 1));
  auto leader = member("b", 10);
  leader.state = api::NodeState::kLeader;
  table.merge(leader, true, 0ms);
  table.mark_dead("b:2113", 1ms);
  const auto state = [&](std::optional<NodeId> now) {
    for (const auto& m : table.view(now)) {
      if (m.http.host == "b") {
        return m.state;
      }
    }
    return api::NodeState::kManager;
  };
  EXPECT_EQ(state(std::nullopt), api::NodeState::kLeader);
  EXPECT_EQ(state("a:2113"), api::NodeState::kUnknown);
}

TEST(MemberTable, AMembersJsonIsReadAsItWasWritten) {
  auto m = member("b", 10);
  m.log.writer = LogPosition(77);
  m.read_only = true;
  const auto text = text_of(m);
  const auto read = member_of(text);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(text_of(*read), text);
  EXPECT_FALSE(member_of("[]").has_value());
  auto json = nlohmann::json::parse(text);
  for (const auto& wrong : {nlohmann::json(1e300), nlohmann::json(0.5), nlohmann::json("1")}) {
    json["timestamp"] = wrong;
    EXPECT_FALSE(member_of(json.dump()).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace verger::node
