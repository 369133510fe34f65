#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "nodeagent/api/node.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/agent.h"
#include "tests/support/cluster/sim_world.h"
#include "tests/support/temp_directory.h"
#include "tests/unit/nodeagent_operations/still_node.h"

/// How an agent ends: by being destroyed, and in order.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

api::Gossip gossip_of_follower() {
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

http::Response json_response(const json& body) {
  http::Response out;
  out.headers.set("Content-Type", "application/json");
  out.body = body.dump();
  return out;
}

http::Request operation(std::string_view kind, const json& parameters) {
  return {.method = "POST",
          .target = "/agent/v1/operations",
          .body = json{{"id", "o1"},
                       {"run", "r"},
                       {"step", "s"},
                       {"controllerEpoch", 1},
                       {"kind", kind},
                       {"parameters", parameters}}
                      .dump()};
}

const http::Request kPermit{
    .method = "POST",
    .target = "/agent/v1/permits",
    .body = R"({"controllerEpoch":1,"run":"r","step":"s","validForMs":60000})"};

TEST(AgentThatIsDestroyed, AsksItsNodeNothingMoreWhileTheExecutorRunsOn) {
  testing::SimWorld world(1);
  auto& host = world.add_host("n1");
  host.boot();
  int asked = 0;
  host.serve_http(2113, [&asked](http::Request request) -> net::awaitable<http::Response> {
    ++asked;
    co_return request.method == "GET" ? json_response(api::to_json(gossip_of_follower()))
                                      : http::Response{.status = 200};
  });
  node::InlineJobRunner runner(host.timers());
  int looked = 0;
  auto opened = Agent::open({.journal = "/agent/journal.db",
                             .node = {.tls = false, .host = "n1", .port = 2113},
                             .poll_interval = milliseconds(100)},
                            {.executor = host.executor(),
                             .files = host.disk(),
                             .clock = host.clock(),
                             .timers = host.timers(),
                             .client = host.client(),
                             .jobs = runner,
                             .log = null_log(),
                             .inspection = [&looked]() -> node::NodeInspection* {
                               ++looked;
                               return nullptr;
                             }});
  ASSERT_TRUE(opened) << opened.error().message;
  auto agent = std::move(*opened);
  agent->start();
  std::vector<int> statuses;
  host.spawn([](http::Handler handler, std::vector<int>& into) -> net::awaitable<void> {
    into.push_back((co_await handler(kPermit)).status);
    // The node's gossip never shows this priority: the agent looks again and again.
    into.push_back((co_await handler(operation("set_priority", {{"priority", -1}}))).status);
  }(agent->handler(), statuses));
  ASSERT_TRUE(world.run_until([&] { return asked > 5; }, milliseconds(5'000)));
  EXPECT_EQ(statuses, (std::vector<int>{204, 202}));

  const auto handler = agent->handler();
  agent.reset();
  EXPECT_TRUE(OperationJournal::open(host.disk(), "/agent/journal.db", host.clock())) << "is free";
  const auto asked_before = asked;
  const auto looked_before = looked;
  world.run_for(milliseconds(30'000));
  EXPECT_LE(asked, asked_before + 1) << "a request may have been under way";
  EXPECT_EQ(looked, looked_before);
  host.spawn([](http::Handler to, std::vector<int>& into) -> net::awaitable<void> {
    into.push_back((co_await to(kPermit)).status);
  }(handler, statuses));
  world.run_for(milliseconds(10));
  EXPECT_EQ(statuses.back(), 503);
}

/// A node that may be scavenged offline, as far as looking at it goes.
class ScavengeableNode final : public StillNode {
 public:
  std::string instance_id() const override { return "00000000-0000-0000-0000-000000000001"; }
  node::NodePositions positions() const override { return {.writer = LogPosition(100'000)}; }
  node::ChunkInventory chunks() const override { return {.chunk_size = 1000}; }
  Result<std::vector<streams::ScavengePoint>> scavenge_points() const override {
    streams::ScavengePoint point;
    point.position = LogPosition(10);
    point.number = EventNumber(0);
    return std::vector{point};
  }
};

class ScriptedNode final : public http::Client {
 public:
  net::awaitable<Result<http::Response>> send(http::Endpoint, http::Request request,
                                              milliseconds) override {
    co_return json_response(request.target.starts_with("/gossip")
                                ? api::to_json(gossip_of_follower())
                                : json{{"scavengeId", ""}, {"scavengeLink", ""}});
  }
};

/// A scavenge that ends only on a request to stop.
class EndlessScavenge final : public node::JobRunner {
 public:
  explicit EndlessScavenge(http::Timers& timers) : timers_(timers) {}
  net::awaitable<Result<void>> run(std::shared_ptr<Job> /*job*/,
                                   std::shared_ptr<const node::StopFlag> stop) override {
    scavenging = true;
    while (!stop->requested()) {
      co_await timers_.sleep_for(milliseconds(1));
    }
    // A step that ends late: an end that does not wait cancels here.
    co_await timers_.sleep_for(milliseconds(50));
    co_return Error{Errc::kCancelled, "stopped between two steps"};
  }
  bool scavenging = false;

 private:
  http::Timers& timers_;
};

TEST(AgentThatStops, StartsTheServerAgainThatItHadStoppedForAnOfflineScavenge) {
  test::TempDirectory directory;
  const auto deeds = directory.path() / "deeds";
  net::io_context context{1};
  auto& timers = http::system_timers();
  EndlessScavenge runner(timers);
  node::InlineJobRunner looks(timers);
  external::OfflineServer offline({.database = directory.path() / "db", .index = {}},
                                  {.start_command = "echo start >> " + deeds.string(),
                                   .stop_command = "echo stop >> " + deeds.string()},
                                  posix_file_system(), system_clock(), system_random(), timers,
                                  runner, looks, null_log());
  ScavengeableNode node;
  ScriptedNode client;
  const auto open = [&] {
    auto opened = Agent::open({.journal = directory.path() / "agent" / "journal.db",
                               .node = {.tls = false, .host = "10.0.0.1", .port = 2113},
                               .poll_interval = milliseconds(10)},
                              {.executor = context.get_executor(),
                               .files = posix_file_system(),
                               .clock = system_clock(),
                               .timers = timers,
                               .client = client,
                               .jobs = runner,
                               .log = null_log(),
                               .inspection = [&node] { return &node; },
                               .offline = &offline});
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  };
  auto agent = open();
  agent->start();
  json ended = json::object();
  const auto whole = [&]() -> net::awaitable<void> {
    EXPECT_EQ((co_await agent->handler()(kPermit)).status, 204);
    const auto accepted = co_await agent->handler()(operation("offline_scavenge", {{"point", 0}}));
    EXPECT_EQ(accepted.status, 202) << accepted.body;
    while (!runner.scavenging) {
      co_await timers.sleep_for(milliseconds(1));
    }
    co_await agent->stop();
    agent.reset();
    agent = open();
    agent->start();
    while (ended.value("state", "") != "failed") {
      co_await timers.sleep_for(milliseconds(5));
      const auto answer =
          co_await agent->handler()({.method = "GET", .target = "/agent/v1/operations/o1"});
      ended = json::parse(answer.body);
    }
    co_await agent->stop();
  };
  std::exception_ptr failure;
  net::co_spawn(context, whole(), [&failure](std::exception_ptr error) { failure = error; });
  context.run_for(std::chrono::seconds(20));
  EXPECT_FALSE(failure);
  std::stringstream done;
  done << std::ifstream(deeds).rdbuf();
  EXPECT_EQ(done.str(), "stop\nstart\n");
  EXPECT_EQ(ended.value("errorCode", ""), "stopped") << ended;
}

}  // namespace
}  // namespace verger::agent
