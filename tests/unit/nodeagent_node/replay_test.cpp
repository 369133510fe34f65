// Recorded exchanges with a real server, sent to an embedded node in the same setting.
#include <fstream>
#include <gtest/gtest.h>
#include <set>

#include <nlohmann/json.hpp>

#include "nodeagent/node/node.h"
#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using nlohmann::json;

json recorded(const std::string& file) {
  std::ifstream in(std::string(VERGER_TEST_FIXTURES) + "/node-interface/" + file);
  return json::parse(in);
}

http::Request request_of(const json& exchange) {
  const auto& from = exchange["request"];
  http::Request request;
  request.method = from["method"];
  request.target = from["path"];
  request.headers.set("Host", "10.0.0.1:2113");
  for (const auto& [name, value] : from["headers"].items()) {
    request.headers.set(name, value.get<std::string>());
  }
  if (from["body"].is_string()) {
    request.body = from["body"];
  } else if (!from["body"].is_null()) {
    request.body = from["body"].dump();
  }
  return request;
}

/// Names and kinds of values, not the values.
json shape(const json& value) {
  if (value.is_object()) {
    json out = json::object();
    for (const auto& [name, member] : value.items()) {
      out[name] = shape(member);
    }
    return out;
  }
  if (value.is_array()) {
    return value.empty() ? json::array() : json::array({shape(value[0])});
  }
  return value.is_number() ? "number" : value.type_name();
}

void expect_same(const json& exchange, const http::Response& answer) {
  const auto& expected = exchange["response"];
  EXPECT_EQ(answer.status, expected["status"].get<int>());
  const auto reason =
      answer.reason.empty() ? std::string(http::standard_reason(answer.status)) : answer.reason;
  EXPECT_EQ(reason, expected["reason"].get<std::string>());
  for (const auto& [name, value] : expected["headers"].items()) {
    static const std::set<std::string> by_nature = {"Content-Length", "Transfer-Encoding", "ETag"};
    if (!by_nature.contains(name)) {
      auto text = answer.headers.get(name);
      auto wanted = value.get<std::string>();
      if (name == "Location") {
        wanted = wanted.substr(0, wanted.find("/incoming/"));
        EXPECT_TRUE(text && text->starts_with(wanted)) << text.value_or("(none)");
        continue;
      }
      EXPECT_EQ(text.value_or("(none)"), wanted) << name;
    }
  }
  const auto& body = expected["body"];
  if (body.is_string()) {
    EXPECT_EQ(answer.body, body.get<std::string>());
  }
}

struct Replay {
  Replay() : world(1), cluster(world, options()) {
    cluster.boot_all();
    EXPECT_TRUE(cluster.run_until_settled());
  }
  static NodeClusterOptions options() {
    NodeClusterOptions alone;
    alone.voters = 1;
    return alone;
  }
  http::Response send(const json& exchange) {
    auto answer = cluster.request(0, request_of(exchange));
    EXPECT_TRUE(answer.has_value()) << answer.error().message;
    return answer ? *answer : http::Response{};
  }
  SimWorld world;
  NodeCluster cluster;
};

TEST(Replay, ScavengeValidation) {
  Replay replay;
  std::size_t matched = 0;
  for (const auto& exchange : recorded("scavenge-validation.json")) {
    SCOPED_TRACE(exchange["title"].get<std::string>());
    const auto answer = replay.send(exchange);
    expect_same(exchange, answer);
    if (exchange["response"]["body"].is_object()) {
      EXPECT_EQ(json::parse(answer.body), exchange["response"]["body"]);
    }
    ++matched;
  }
  EXPECT_EQ(matched, 39U);
}

TEST(Replay, Atom) {
  Replay replay;
  for (const auto& exchange : recorded("atom.json")) {
    SCOPED_TRACE(exchange["title"].get<std::string>());
    const auto answer = replay.send(exchange);
    expect_same(exchange, answer);
    const auto& body = exchange["response"]["body"];
    // $all begins with whatever the node wrote before; pages that were cut show less.
    const bool comparable =
        body.is_object() && body.contains("title") &&
        exchange["request"]["path"].get<std::string>().find("$all") == std::string::npos;
    if (comparable) {
      const auto own = json::parse(answer.body, nullptr, false);
      ASSERT_FALSE(own.is_discarded()) << answer.body;
      EXPECT_EQ(shape(own), shape(body));
      if (body.contains("links")) {
        EXPECT_EQ(own["links"], body["links"]);
      }
    } else if (body.is_object() && !body.contains("entries") && !body.contains("title")) {
      EXPECT_EQ(json::parse(answer.body, nullptr, false), body);
    }
  }
}

TEST(Replay, NodeCommands) {
  Replay replay;
  for (const auto& exchange : recorded("node-commands.json")) {
    SCOPED_TRACE(exchange["title"].get<std::string>());
    const auto answer = replay.send(exchange);
    if (exchange["request"]["path"] == "/admin/mergeindexes") {
      EXPECT_EQ(answer.status, 200);
      EXPECT_EQ(answer.body.size(), exchange["response"]["body"].is_string() ? 52U : 62U);
      continue;  // the id differs
    }
    expect_same(exchange, answer);
    replay.cluster.run_until_settled();
  }
}

TEST(Replay, NodeFacts) {
  Replay replay;
  const std::set<std::string> paths = {
      "/info",      "/ping",    "/health/live", "/gossip",
      "/elections", "/nothing", "/admin/info",  "/auto-scavenge/status"};
  std::size_t count = 0;
  for (const auto& exchange : recorded("node-facts.json")) {
    const auto path = exchange["request"]["path"].get<std::string>();
    const auto accept = exchange["request"]["headers"].value("Accept", "");
    if (!paths.contains(path.substr(0, path.find('?'))) ||
        accept.find("xml") != std::string::npos || path.find("xml") != std::string::npos) {
      continue;
    }
    SCOPED_TRACE(exchange["title"].get<std::string>());
    ++count;
    const auto answer = replay.send(exchange);
    auto expected = exchange;
    if (path == "/info" || path == "/gossip") {
      expected["response"]["body"] = nullptr;  // tells of the other cluster
    }
    expect_same(expected, answer);
    if (path == "/gossip" && accept == "application/json" && answer.status == 200) {
      EXPECT_EQ(shape(json::parse(answer.body)), shape(exchange["response"]["body"]));
    }
    if (path == "/info") {
      auto own = json::parse(answer.body);
      EXPECT_TRUE(own.contains("verger"));
      own.erase("verger");
      const auto& body = exchange["response"]["body"];
      EXPECT_EQ(shape(own), shape(body.is_string() ? json::parse(body.get<std::string>()) : body));
    }
  }
  EXPECT_GT(count, 15U);
}

}  // namespace
}  // namespace verger::testing
