// What servers of other versions, other addresses and things between us and them answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodeagent/client/answers.h"
#include "nodeagent/client/judge.h"

namespace verger::client::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

api::GossipMember member(int number, std::string http_ip, int http_port, std::string tcp_ip) {
  api::GossipMember out;
  out.instance_id = "instance-" + std::to_string(number);
  out.state = api::NodeState::kFollower;
  out.is_alive = true;
  out.http_ip = std::move(http_ip);
  out.http_port = http_port;
  out.internal_tcp_ip = std::move(tcp_ip);
  return out;
}

/// Three containers that advertise the host's address and their published ports to clients.
api::Gossip behind_published_ports(int answering) {
  api::Gossip gossip;
  for (int i = 1; i <= 3; ++i) {
    gossip.members.push_back(
        member(i, "127.0.0.1", 2110 + i, "172.30.240." + std::to_string(10 + i)));
  }
  gossip.server_ip = "172.30.240." + std::to_string(10 + answering);
  gossip.server_port = 2113;
  return gossip;
}

TEST(OtherAddresses, ANodeIsFoundByTheAddressItAdvertises) {
  for (int i = 1; i <= 3; ++i) {
    const auto gossip = behind_published_ports(i);
    const http::Endpoint asked{true, "127.0.0.1", static_cast<std::uint16_t>(2110 + i)};
    ASSERT_NE(answering_member(gossip, asked), nullptr);
    EXPECT_EQ(answering_member(gossip, asked)->instance_id, "instance-" + std::to_string(i));
    EXPECT_TRUE(own_entry(gossip, asked).done());
  }
}

TEST(OtherAddresses, ANodeThatIsAskedByAnotherNameIsFoundAllTheSame) {
  for (int i = 1; i <= 3; ++i) {
    const auto gossip = behind_published_ports(i);
    const http::Endpoint asked{true, "node.example.com", 2113};
    ASSERT_NE(answering_member(gossip, asked), nullptr) << "by its address between the nodes";
    EXPECT_EQ(answering_member(gossip, asked)->instance_id, "instance-" + std::to_string(i));
  }
  auto gossip = behind_published_ports(2);
  for (auto& each : gossip.members) {
    each.internal_tcp_ip = "127.0.0.1";
  }
  EXPECT_EQ(answering_member(gossip, {true, "localhost", 2112})->instance_id, "instance-2");
  EXPECT_EQ(answering_member(gossip, {true, "localhost", 9999}), nullptr)
      << "better none than wrong";
  EXPECT_EQ(own_entry(gossip).code, "not_itself");
}

TEST(OtherAddresses, HostNamesCompareWithoutCase) {
  api::Gossip gossip;
  gossip.members = {member(1, "N1.example.com", 2113, "10.0.0.1"),
                    member(2, "n2.example.com", 2113, "10.0.0.2")};
  gossip.server_ip = "n1.EXAMPLE.com";
  gossip.server_port = 2113;
  EXPECT_EQ(answering_member(gossip)->instance_id, "instance-1");
}

TEST(OtherAddresses, EntriesAreSignedByAnyOfANodesNames) {
  const auto names = own_names(behind_published_ports(1), {true, "N1.example.com", 2113});
  EXPECT_THAT(names, ElementsAre("127.0.0.1:2111", "172.30.240.11:2113", "n1.example.com:2113"));
  EXPECT_TRUE(is_named(names, "172.30.240.11:2113")) << "bound address, up to 24.2";
  EXPECT_TRUE(is_named(names, "127.0.0.1:2111")) << "advertised address, from 24.6";
  EXPECT_FALSE(is_named(names, "127.0.0.1:2112")) << "another node's";
  EXPECT_FALSE(is_named(names, ""));
}

TEST(OtherVersions, OneThatRunsIsIdentifiedByItsIdInEachDialect) {
  const http::Response answer{.status = 400,
                              .headers = {{"Content-Type", "text/plain"}},
                              .body = R"({"scavengeId":"0f3f0d1c-2a86-4e0b-9d3e-5a7b1a5f8f10"})"};
  const auto outcome = parse_answer_start_scavenge(answer, NodeDialect{});
  EXPECT_EQ(outcome.code, "already_running");
  EXPECT_EQ(outcome.value->id, "0f3f0d1c-2a86-4e0b-9d3e-5a7b1a5f8f10");
}

TEST(OtherVersions, WithoutTheRouteThereIsNoCurrentScavenge) {
  const http::Response answer{.status = 405, .headers = {{"Allow", "DELETE, OPTIONS"}}};
  EXPECT_EQ(parse_answer_current(answer).code, "no_such_route");
}

TEST(SomethingBetween, IsNotTakenForTheNode) {
  const auto page = [](int status, std::string reason) {
    return http::Response{.status = status,
                          .reason = std::move(reason),
                          .headers = {{"Content-Type", "text/html; charset=utf-8"}},
                          .body = "<html><body>nginx</body></html>"};
  };
  const auto history = parse_answer_scavenges(page(404, "Not Found"));
  EXPECT_TRUE(history.refused()) << "no run yet is said by the node only";
  EXPECT_THAT(history.why, HasSubstr("something between"));
  EXPECT_THAT(history.why, ::testing::Not(HasSubstr("<html>")));
  EXPECT_EQ(parse_answer_stop(page(404, "Not Found"), NodeDialect{}).code, "no_such_route");
  EXPECT_EQ(parse_answer_queued(page(403, "Forbidden")).code, "lacks_role");
  EXPECT_TRUE(parse_answer_queued(page(502, "Bad Gateway")).unknown()) << "it may have arrived";
  EXPECT_TRUE(parse_answer_start_scavenge(page(504, "Gateway Timeout"), NodeDialect{}).unknown());
  EXPECT_TRUE(parse_answer_queued(page(200, "OK")).unknown());
  EXPECT_EQ(parse_answer_queued(page(200, "OK")).code, "unexpected_answer");
  EXPECT_EQ(parse_answer_gossip(page(200, "OK")).code, "unexpected_answer");
}

TEST(SomethingBetween, AnEmptyBodyProvesNothing) {
  const http::Response empty{.status = 200, .reason = "OK"};
  EXPECT_TRUE(parse_answer_start_scavenge(empty, NodeDialect{}).unknown());
  EXPECT_EQ(parse_answer_start_scavenge(empty, NodeDialect{}).code, "unexpected_answer");
  EXPECT_TRUE(parse_answer_stop(empty, NodeDialect{}).unknown());
  EXPECT_TRUE(parse_answer_current(empty).unknown());
  EXPECT_TRUE(parse_answer_gossip(empty).unknown());
  EXPECT_TRUE(parse_answer_info(empty).unknown());
  EXPECT_TRUE(parse_answer_scavenges(empty).unknown());
}

}  // namespace
}  // namespace verger::client::test
