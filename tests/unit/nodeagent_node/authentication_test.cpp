#include "nodeagent/node/authentication.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nodeagent/node/users.h"
#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

TEST(Passwords, AreHashedAsTheServerDoes) {
  // PBKDF2-HMAC-SHA1, 1000 rounds, salt 00 01 ... 0f, as Python's hashlib computes it.
  const node::StoredPassword known{"ESjecbuhkU3H6HH3/Q/sDBotvTI=", "AAECAwQFBgcICQoLDA0ODw=="};
  EXPECT_TRUE(node::password_matches(known, "changeit"));
  EXPECT_FALSE(node::password_matches(known, "changeit "));
  EXPECT_FALSE(node::password_matches(known, ""));
  EXPECT_FALSE(node::password_matches({}, ""));
  EXPECT_FALSE(node::password_matches({known.hash, "not base64!"}, "changeit"));
  SeededRandom random(1);
  const auto one = node::hash_password("x", random);
  const auto two = node::hash_password("x", random);
  EXPECT_NE(one.salt, two.salt);
  EXPECT_NE(one.hash, two.hash);
  EXPECT_TRUE(node::password_matches(two, "x"));
}

TEST(Users, AreReadFromTheirEvents) {
  node::User user{.login = "x", .full_name = "X", .groups = {"$ops"}, .disabled = true};
  user.password = {"aGFzaA==", "c2FsdA=="};
  const auto again = node::parse_user(as_bytes(node::user_json(user)));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->full_name, "X");
  EXPECT_EQ(again->groups, user.groups);
  EXPECT_TRUE(again->disabled);
  EXPECT_EQ(again->password.hash, user.password.hash);
  for (const char* bad : {"", "[]", "{}", R"({"loginName":1,"hash":"","salt":""})"}) {
    EXPECT_FALSE(node::parse_user(as_bytes(std::string_view(bad))).has_value()) << bad;
  }
}

class Secured : public ::testing::Test {
 protected:
  Secured() : world(1), cluster(world, options()) {
    cluster.boot_all();
    EXPECT_TRUE(cluster.run_until_settled());
    world.run_for(100ms);
  }
  static NodeClusterOptions options() {
    NodeClusterOptions options;
    options.voters = 1;
    options.node.insecure = false;
    options.node.default_ops_password = "other";
    return options;
  }
  http::Response ask(const std::string& user, const std::string& password, std::string method,
                     const std::string& target, const json& body = nullptr) {
    http::Request request{.method = std::move(method), .target = target};
    request.headers.set("Accept", "application/json");
    if (!user.empty()) {
      request.headers.set("Authorization", http::basic_authorization(user, password));
    }
    if (!body.is_null()) {
      request.headers.set("Content-Type", "application/json");
      if (!target.ends_with("/metadata")) {
        request.headers.set("ES-EventType", "t");
      }
      request.headers.set("ES-EventId", world.random().uuid().to_string());
      request.body = body.dump();
    }
    const auto answer = cluster.request(0, std::move(request));
    return answer ? *answer : http::Response{.status = 0};
  }
  int status(const std::string& user, std::string method, const std::string& target,
             const json& body = nullptr) {
    const std::string password = user == "admin" ? "changeit" : user == "ops" ? "other" : "secret";
    return ask(user, password, std::move(method), target, body).status;
  }

  SimWorld world;
  NodeCluster cluster;
};

TEST_F(Secured, TheFirstPasswordsAreTheConfiguredOnes) {
  EXPECT_EQ(ask("admin", "changeit", "GET", "/admin/login").status, 200);
  EXPECT_EQ(ask("ops", "other", "GET", "/admin/login").status, 200);
  EXPECT_EQ(ask("ops", "changeit", "GET", "/admin/login").status, 401);
  // And no others after a restart with other ones.
  cluster.crash(0);
  cluster.options(0).default_admin_password = "later";
  ASSERT_TRUE(cluster.boot(0).has_value());
  ASSERT_TRUE(cluster.run_until_settled());
  world.run_for(100ms);
  EXPECT_EQ(ask("admin", "changeit", "GET", "/admin/login").status, 200);
  EXPECT_EQ(ask("admin", "later", "GET", "/admin/login").status, 401);
}

TEST_F(Secured, StreamsAreForThoseTheirRightsName) {
  ASSERT_EQ(status("admin", "POST", "/users",
                   {{"loginName", "eve"}, {"groups", {"readers"}}, {"password", "secret"}}),
            201);
  EXPECT_EQ(status("", "POST", "/streams/s", {{"n", 1}}), 401) << "no anonymous client writes";
  EXPECT_EQ(status("eve", "POST", "/streams/s", {{"n", 1}}), 201) << "without an ACL any user does";
  EXPECT_EQ(status("eve", "GET", "/streams/s"), 200);
  EXPECT_EQ(status("", "GET", "/streams/s"), 401);
  EXPECT_EQ(status("eve", "GET", "/streams/$users"), 401) << "the system's are for admins";
  EXPECT_EQ(status("ops", "GET", "/streams/$users"), 401);
  EXPECT_EQ(status("admin", "GET", "/streams/$users"), 200);
  EXPECT_EQ(status("eve", "GET", "/streams/$user-admin"), 401);
  EXPECT_EQ(status("eve", "POST", "/streams/$user-eve", {{"n", 1}}), 401);
  EXPECT_EQ(status("eve", "POST", "/streams/$$s", {{"n", 1}}), 201) << "metadata, without an ACL";
  ASSERT_EQ(status("admin", "POST", "/streams/s/metadata",
                   {{"$acl", {{"$r", "readers"}, {"$w", json::array()}, {"$mw", "ops"}}}}),
            201);
  EXPECT_EQ(status("eve", "GET", "/streams/s"), 200) << "in the group";
  EXPECT_EQ(status("ops", "GET", "/streams/s"), 401);
  EXPECT_EQ(status("eve", "POST", "/streams/s", {{"n", 2}}), 401) << "an empty list: admins only";
  EXPECT_EQ(status("admin", "POST", "/streams/s", {{"n", 2}}), 201);
  EXPECT_EQ(status("eve", "POST", "/streams/s/metadata", json::object()), 401);
  EXPECT_EQ(status("eve", "POST", "/streams/$$s", json::object()), 401) << "by the other name";
  EXPECT_EQ(status("ops", "POST", "/streams/s/metadata", json::object()), 201);
  EXPECT_EQ(status("eve", "DELETE", "/streams/s"), 204) << "the new metadata has no ACL";
}

TEST_F(Secured, AChangedPasswordADisabledAndADeletedUserCountAtOnce) {
  ASSERT_EQ(status("admin", "POST", "/users",
                   {{"loginName", "eve"}, {"groups", {"$ops"}}, {"password", "secret"}}),
            201);
  EXPECT_EQ(status("eve", "GET", "/admin/scavenge/current"), 200);
  EXPECT_EQ(status("admin", "POST", "/users/eve/command/disable"), 200);
  EXPECT_EQ(status("eve", "GET", "/admin/scavenge/current"), 401);
  EXPECT_EQ(status("admin", "POST", "/users/eve/command/enable"), 200);
  EXPECT_EQ(status("eve", "GET", "/admin/scavenge/current"), 200);
  EXPECT_EQ(status("admin", "PUT", "/users/eve", {{"fullName", "E"}, {"groups", json::array()}}),
            200);
  EXPECT_EQ(status("eve", "GET", "/admin/scavenge/current"), 401) << "out of the group";
  EXPECT_EQ(status("eve", "GET", "/admin/login"), 200);
  EXPECT_EQ(status("admin", "DELETE", "/users/eve"), 200);
  EXPECT_EQ(status("eve", "GET", "/admin/login"), 401);
  EXPECT_EQ(status("eve", "GET", "/health/live"), 204) << "a sign of life for everybody";
}

TEST(Leaderless, AVoterWithoutALeaderDoesNotKnowWhoTheUsersAre) {
  SimWorld world(1);
  NodeClusterOptions options;
  options.node.insecure = false;
  NodeCluster cluster(world, options);
  ASSERT_TRUE(cluster.boot(0).has_value());
  world.run_for(300ms);
  http::Request request{.target = "/admin/login"};
  request.headers.set("Authorization", http::basic_authorization("admin", "changeit"));
  const auto answer = cluster.request(0, std::move(request));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->headers.get("Retry-After"), "5");
}

TEST(Misbehaviour, GossipLagsAndAStopIsNotAnswered) {
  SimWorld world(1);
  NodeClusterOptions options;
  options.voters = 1;
  options.job_budget = Budget{1};
  options.node.misbehaviour.gossip_lag = 4s;
  options.node.misbehaviour.lose_stop_answer = true;
  NodeCluster cluster(world, options);
  cluster.boot_all();
  ASSERT_TRUE(cluster.run_until_settled());
  world.run_for(5s);
  const auto writer = [&] {
    return json::parse(cluster.get(0, "/gossip")->body)["members"][0]["writerCheckpoint"]
        .get<std::int64_t>();
  };
  const auto before = writer();
  ASSERT_EQ(cluster.append(0, "s", "{}"), 201);
  EXPECT_EQ(writer(), before);
  world.run_for(5s);
  EXPECT_GT(writer(), before);

  ASSERT_EQ(cluster.post(0, "/admin/scavenge?throttlePercent=1")->status, 200);
  http::Request stop{.method = "DELETE", .target = "/admin/scavenge/current"};
  const auto answer = cluster.request(0, std::move(stop), 5s);
  EXPECT_FALSE(answer.has_value()) << answer->status;
  EXPECT_FALSE(cluster.node(0)->inspection().running_scavenge().has_value()) << "it was stopped";
}

}  // namespace
}  // namespace verger::testing
