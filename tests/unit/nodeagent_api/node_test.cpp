#include "nodeagent/api/node.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_text.h"

namespace verger::api {
namespace {

TEST(NodeApi, AStateOfANewerServerIsUnknownAndHidesNoMember) {
  const auto gossip = parse_gossip(
      R"({"members":[{"state":"Leader","isAlive":true},{"state":"King","isAlive":true}]})");
  ASSERT_TRUE(gossip.has_value());
  EXPECT_EQ(gossip->members[0].state, NodeState::kLeader);
  EXPECT_EQ(gossip->members[1].state, NodeState::kUnknown);
}

TEST(NodeApi, KnowsEveryStateInEverySpelling) {
  for (int i = 0; i <= static_cast<int>(NodeState::kResigningLeader); ++i) {
    const auto state = static_cast<NodeState>(i);
    std::string text(to_string(state));
    EXPECT_EQ(parse_node_state(text), state);
    for (char& c : text) {
      c = static_cast<char>(std::tolower(c));
    }
    EXPECT_EQ(parse_node_state(text), state) << text;
  }
  EXPECT_EQ(parse_node_state("Master"), NodeState::kLeader);
  EXPECT_EQ(parse_node_state("slave"), NodeState::kFollower);
  EXPECT_EQ(parse_node_state("PreMaster"), NodeState::kPreLeader);
  EXPECT_EQ(parse_node_state("").error().code, Errc::kInvalidArgument);
}

TEST(NodeApi, ReadsGossipOf24AsItWasWritten) {
  Gossip gossip;
  gossip.server_ip = "10.0.0.1";
  gossip.server_port = 2113;
  GossipMember member;
  member.instance_id = "5b1e0f4a-90b1-4a37-8ad1-2d7c1f0d6a11";
  member.state = NodeState::kLeader;
  member.is_alive = true;
  member.http_ip = "10.0.0.1";
  member.http_port = 2113;
  member.writer_checkpoint = 9'007'199'254'740'993;  // no double holds it
  member.epoch_number = 7;
  member.es_version = "24.6.0";
  gossip.members = {member, GossipMember{}};
  const auto text = to_text(gossip);
  const auto back = parse_gossip(text);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(to_text(*back), text);
  EXPECT_EQ(back->members[0].writer_checkpoint, 9'007'199'254'740'993);
  EXPECT_FALSE(text.contains("internalHttpEndPoint"));
}

TEST(NodeApi, ReadsGossipOf5) {
  const auto gossip = parse_gossip(R"({"members":[{"instanceId":"a","state":"Slave","isAlive":true,
      "internalHttpIp":"10.0.0.1","internalHttpPort":2112,"externalHttpIp":"10.1.0.1",
      "externalHttpPort":2113,"lastCommitPosition":5,"writerCheckpoint":6,"nodePriority":0}],
      "serverIp":"10.0.0.1","serverPort":2112})");
  ASSERT_TRUE(gossip.has_value()) << gossip.error().message;
  const auto& member = gossip->members.at(0);
  EXPECT_EQ(member.state, NodeState::kFollower);
  EXPECT_EQ(member.http_ip, "10.1.0.1");
  EXPECT_EQ(member.http_port, 2113);
  EXPECT_EQ(member.internal_http_port, 2112);
  EXPECT_EQ(member.epoch_number, -1);
  EXPECT_EQ(member.es_version, "");
}

TEST(NodeApi, ReadsGossipOf25WithNullsAndUnknownMembers) {
  const auto gossip = parse_gossip(R"({"members":[{"state":"ReadOnlyReplica","isAlive":false,
      "httpEndPointIp":"n1.example.com","httpEndPointPort":443,"internalHttpEndPointIp":"10.0.0.1",
      "internalHttpEndPointPort":2113,"esVersion":null,"epochId":null,"new":{"x":[1]}}]})");
  ASSERT_TRUE(gossip.has_value()) << gossip.error().message;
  EXPECT_EQ(gossip->members[0].http_ip, "n1.example.com");
  EXPECT_EQ(gossip->members[0].internal_http_ip, "10.0.0.1");
  EXPECT_EQ(gossip->members[0].es_version, "");
}

TEST(NodeApi, SaysWhereAShapeIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not JSON"},
      {"[]", "gossip: an object"},
      {"{}", "gossip.members: is missing"},
      {R"({"members":{}})", "gossip.members: an array"},
      {R"({"members":[{}]})", "gossip.members[0].state: is missing"},
      {R"({"members":[{"state":"Leader","writerCheckpoint":1.5}]})", "writerCheckpoint: a whole"},
      {R"({"members":[{"state":"Leader","writerCheckpoint":18446744073709551615}]})", "too large"},
      {R"({"members":[{"state":"Leader","epochNumber":2147483648}]})", "epochNumber: "},
      {R"({"members":[{"state":"Leader","isAlive":"true"}]})", "isAlive: true or false"},
      {R"({"members":[{"state":"Leader","instanceId":5}]})", "instanceId: a string"},
  };
  for (const auto& [body, text] : cases) {
    const auto gossip = parse_gossip(body);
    ASSERT_FALSE(gossip.has_value()) << body;
    EXPECT_EQ(gossip.error().code, Errc::kCorruption);
    EXPECT_TRUE(gossip.error().message.contains(text)) << gossip.error().message;
  }
}

TEST(NodeApi, PassesOverEntriesOfAHistoryThatNoServerWrote) {
  const auto feed = parse_scavenge_feed(R"({"entries":[
      {"eventNumber":4},
      {"eventType":"$scavengeStarted","eventNumber":3,"data":"not JSON"},
      {"eventType":"note","eventNumber":2,"data":"[1]"},
      "?",
      {"eventType":"$scavengeStarted","eventNumber":1,"data":{"scavengeId":7}},
      {"eventType":"$scavengeStarted","eventNumber":0,"data":"{\"scavengeId\":\"a\"}"}]})");
  ASSERT_TRUE(feed.has_value()) << feed.error().message;
  ASSERT_EQ(feed->size(), 1U);
  EXPECT_EQ(feed->at(0).scavenge_id, "a");
  EXPECT_FALSE(parse_scavenge_feed(R"({"entries":{}})").has_value()) << "not a page at all";
}

TEST(NodeApi, LimitsTheDepthOfJson) {
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']'), "x").has_value());
  EXPECT_FALSE(parse_json(std::string(65, '[') + std::string(65, ']'), "x").has_value());
  EXPECT_FALSE(parse_json(std::string(5'000'000, '['), "x").has_value());
  EXPECT_TRUE(parse_json("\"" + std::string(100, '[') + "\\\"[\"", "x").has_value());
}

TEST(NodeApi, WritesBytesThatAreNoTextWithoutAnException) {
  EXPECT_EQ(to_text("a\xff"), "\"a\xEF\xBF\xBD\"");
}

TEST(NodeApi, ReadsInfoOfEveryVersion) {
  const auto v5 =
      parse_info(R"({"esVersion":"5.0.11.0","state":"slave","projectionsMode":"None"})");
  ASSERT_TRUE(v5.has_value());
  EXPECT_TRUE(v5->atom_pub);
  EXPECT_EQ(v5->version, "5.0.11.0");
  const auto v25 = parse_info(R"({"dbVersion":"25.0.0.1673","esVersion":"25.0.0.1673",
      "state":"leader","features":{"projections":false,"userManagement":true,"atomPub":false},
      "authentication":{"type":"internal","properties":[]}})");
  ASSERT_TRUE(v25.has_value());
  EXPECT_FALSE(v25->atom_pub);
  EXPECT_FALSE(v25->is_verger);
  EXPECT_EQ(v25->authentication_type, "internal");
  auto ours = *v25;
  ours.is_verger = true;
  EXPECT_TRUE(parse_info(to_text(to_json(ours)))->is_verger);
  EXPECT_FALSE(parse_info(R"({"state":"leader"})").has_value());
  EXPECT_FALSE(parse_info(R"({"esVersion":"24.6.0"})").has_value());
}

TEST(NodeApi, ReadsVersions) {
  EXPECT_EQ(parse_version("24.6.0"), (Version{24, 6, 0}));
  EXPECT_EQ(parse_version("23.10.8.0"), (Version{23, 10, 8}));
  EXPECT_EQ(parse_version("25.0.0.1673"), (Version{25, 0, 0}));
  EXPECT_EQ(parse_version("26.1-alpha.3"), (Version{26, 1, 0}));
  EXPECT_EQ(parse_version("24.10.14-rc.1+abc"), (Version{24, 10, 14}));
  EXPECT_LT(*parse_version("22.10.0"), *parse_version("22.10.1"));
  for (const std::string_view none : {"", "old_version", "unknown_version", "default_version",
                                      "0.0.0.0", "24", "-1.2", "v24.6", "99999999999.1"}) {
    EXPECT_EQ(parse_version(none), std::nullopt) << none;
  }
}

TEST(NodeApi, ReadsTheLogOfAScavenge) {
  const auto events = parse_scavenge_feed(R"({"entries":[
    {"eventType":"$scavengeCompleted","eventNumber":2,"data":
      "{\"result\":\"Success\",\"error\":null,\"spaceSaved\":-5,\"maxChunkScavenged\":41}"},
    {"eventType":"$scavengeChunksCompleted","eventNumber":1,"data":{"scavengeId":"a",
      "chunkStartNumber":3,"chunkEndNumber":4,"spaceSaved":9,"errorMessage":"x"}},
    {"eventType":"$>","eventNumber":0,"data":null}]})");
  ASSERT_TRUE(events.has_value()) << events.error().message;
  ASSERT_EQ(events->size(), 3U);
  EXPECT_EQ((*events)[0].result, "Success");
  EXPECT_EQ((*events)[0].error, "");
  EXPECT_EQ((*events)[0].space_saved, -5);
  EXPECT_EQ((*events)[0].max_chunk_scavenged, 41);
  EXPECT_EQ((*events)[1].chunk_end, 4);
  EXPECT_EQ((*events)[1].error, "x");
  EXPECT_FALSE(parse_scavenge_feed("{}").has_value());
}

TEST(NodeApi, DistinguishesAnIdleNodeFromAnAnswerOfAnotherShape) {
  EXPECT_EQ(parse_current_scavenge(R"({"scavengeId":"","scavengeLink":""})")->id, "");
  EXPECT_FALSE(parse_current_scavenge("{}").has_value());
  EXPECT_FALSE(parse_current_scavenge(R"({"scavengeId":null})").has_value());
  EXPECT_FALSE(parse_current_scavenge("").has_value());
}

}  // namespace
}  // namespace verger::api
