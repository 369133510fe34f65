#pragma once

#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_answer.h"
#include "nodeagent/api/node.h"
#include "nodeagent/http/client.h"

/// Of agents without a simulated network: what their node answers, and what they are sent.
namespace verger::agent {

inline api::Gossip gossip_of_follower() {
  api::Gossip gossip{.members = {}, .server_ip = "10.0.0.1", .server_port = 2113};
  for (int i = 1; i <= 2; ++i) {
    api::GossipMember member;
    member.instance_id = fmt::format("00000000-0000-0000-0000-00000000000{}", i);
    member.state = i == 2 ? api::NodeState::kLeader : api::NodeState::kFollower;
    member.is_alive = true;
    member.http_ip = fmt::format("10.0.0.{}", i);
    member.http_port = 2113;
    member.writer_checkpoint = 100'000;
    member.last_commit_position = 100'000;
    gossip.members.push_back(std::move(member));
  }
  return gossip;
}

inline http::Response json_response(const nlohmann::json& body) {
  http::Response out;
  out.headers.set("Content-Type", "application/json");
  out.body = body.dump();
  return out;
}

/// The first of two nodes: a follower on which no scavenge runs.
class FollowerAnswers final : public http::Client {
 public:
  net::awaitable<Result<http::Response>> send(http::Endpoint, http::Request request,
                                              std::chrono::milliseconds) override {
    if (request.target.starts_with("/gossip")) {
      co_return api::json_text_answer(200, api::to_text(gossip_of_follower()));
    }
    if (request.target.starts_with("/info")) {
      co_return json_response({{"esVersion", "24.10.0"}, {"state", "follower"}});
    }
    co_return json_response({{"scavengeId", ""}, {"scavengeLink", ""}});
  }
};

inline http::Request operation_request(std::string_view kind, const nlohmann::json& parameters) {
  return {.method = "POST",
          .target = "/agent/v1/operations",
          .body = nlohmann::json{{"id", "o1"},
                                 {"run", "r"},
                                 {"step", "s"},
                                 {"controllerEpoch", 1},
                                 {"kind", kind},
                                 {"parameters", parameters}}
                      .dump()};
}

inline http::Request permit_request() {
  return {.method = "POST",
          .target = "/agent/v1/permits",
          .body = R"({"controllerEpoch":1,"run":"r","step":"s","validForMs":60000})"};
}

}  // namespace verger::agent
