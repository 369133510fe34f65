#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "nodeagent/api/json_answer.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/agent.h"
#include "tests/support/cluster/sim_world.h"
#include "tests/support/temp_directory.h"
#include "tests/unit/nodeagent_operations/follower_answers.h"
#include "tests/unit/nodeagent_operations/still_node.h"

/// How an agent ends: by being destroyed, and in order.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

TEST(AgentThatIsDestroyed, AsksItsNodeNothingMoreWhileTheExecutorRunsOn) {
  testing::SimWorld world(1);
  auto& host = world.add_host("n1");
  host.boot();
  int asked = 0;
  host.serve_http(2113, [&asked](http::Request request) -> net::awaitable<http::Response> {
    ++asked;
    co_return request.method == "GET"
        ? api::json_text_answer(200, api::to_text(gossip_of_follower()))
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
    into.push_back((co_await handler(permit_request())).status);
    // The node's gossip never shows this priority: the agent looks again and again.
    into.push_back(
        (co_await handler(operation_request("set_priority", {{"priority", -1}}))).status);
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
    into.push_back((co_await to(permit_request())).status);
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

/// A scavenge that ends only on a request to stop.
class EndlessScavenge final : public node::JobRunner {
 public:
  explicit EndlessScavenge(http::Timers& timers) : timers_(timers) {}
  net::awaitable<Result<void>> run(std::shared_ptr<Job> job,
                                   std::shared_ptr<const node::StopFlag> stop) override {
    if (std::exchange(scavenging, true)) {
      static_cast<void>(job->step({}));  // it is dropped
      co_return Result<void>();
    }
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
  FollowerAnswers client;
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
    EXPECT_EQ((co_await agent->handler()(permit_request())).status, 204);
    const auto accepted =
        co_await agent->handler()(operation_request("offline_scavenge", {{"point", 0}}));
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
