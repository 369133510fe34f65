// Three embedded nodes in one process, over real sockets on loopback and real files.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <nlohmann/json.hpp>

#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/frame_transport.h"
#include "nodeagent/http/server.h"
#include "nodeagent/node/node.h"
#include "tests/support/temp_directory.h"

namespace verger {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

/// One node with its servers. The ports are bound before the node exists, so that all know all.
struct Machine {
  Machine(net::io_context& context, const Path& directory)
      : path(directory),
        client(context.get_executor()),
        frames(context.get_executor()),
        server(
            context.get_executor(), {},
            [this](http::Request request) { return handler(std::move(request)); }, null_log()),
        acceptor(
            context.get_executor(), {},
            [this](std::shared_ptr<http::FrameConnection> connection) {
              return frame_handler(std::move(connection));
            },
            null_log()) {
    addresses.http = *server.listen();
    addresses.replication = *acceptor.listen();
  }

  void start(net::io_context& context, node::JobRunner& jobs,
             const std::vector<http::Endpoint>& others) {
    node::NodeOptions options;
    options.database = path / "db";
    options.index = path / "index";
    options.cluster_size = static_cast<int>(others.size()) + 1;
    options.gossip_seeds = others;
    options.chunk_size = 64 * 1024;
    options.max_mem_table_size = 1000;
    options.index_cache_depth = 8;
    options.stream_existence_filter_size = 10'000;
    options.enable_atom_pub = true;
    options.timings = node::NodeTimings::fast();
    // The machine is shared: real time may jump.
    options.timings.election_timeout = 250ms;
    options.timings.heartbeat_timeout = 1000ms;
    options.timings.quorum_loss_wait = 1500ms;
    options.timings.gossip_timeout = 1000ms;
    options.timings.write_timeout = 10'000ms;
    auto opened = node::Node::open(options, {.executor = context.get_executor(),
                                             .files = posix_file_system(),
                                             .clock = system_clock(),
                                             .random = system_random(),
                                             .timers = http::system_timers(),
                                             .client = client,
                                             .frames = frames,
                                             .jobs = jobs,
                                             .log = null_log()});
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    node = *std::move(opened);
    handler = node->http_handler();
    frame_handler = node->frame_handler();
    node->start(addresses);
  }

  Path path;
  node::NodeAddresses addresses;
  http::BeastClient client;
  http::TcpFrameTransport frames;
  http::Handler handler;
  http::FrameHandler frame_handler;
  http::Server server;
  http::FrameAcceptor acceptor;
  std::unique_ptr<node::Node> node;
};

class ThreeNodes : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 3; ++i) {
      machines.push_back(std::make_unique<Machine>(context, directory.path() / std::to_string(i)));
    }
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<http::Endpoint> others;
      for (std::size_t k = 0; k < 3; ++k) {
        if (k != i) {
          others.push_back(machines[k]->addresses.http);
        }
      }
      machines[i]->start(context, jobs, others);
    }
  }

  void TearDown() override {
    for (auto& machine : machines) {
      wait_for(machine->node->stop());
    }
    pool.join();
    for (auto& machine : machines) {
      wait_for(machine->server.stop(100ms));
      wait_for(machine->acceptor.stop(100ms));
      machine->node.reset();
    }
  }

  bool run_until(const std::function<bool()>& done, std::chrono::seconds limit = 30s) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done() && std::chrono::steady_clock::now() < end) {
      context.restart();
      context.run_one_for(50ms);
    }
    return done();
  }

  void wait_for(net::awaitable<void> work) {
    bool done = false;
    net::co_spawn(context, std::move(work), [&](const std::exception_ptr& failure) {
      EXPECT_FALSE(failure);
      done = true;
    });
    EXPECT_TRUE(run_until([&] { return done; }));
  }

  http::Response send(std::size_t i, http::Request request) {
    std::optional<Result<http::Response>> answer;
    net::co_spawn(context, client.send(machines[i]->addresses.http, std::move(request), 20s),
                  [&](const std::exception_ptr&, Result<http::Response> response) {
                    answer.emplace(std::move(response));
                  });
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    EXPECT_TRUE(answer && answer->has_value()) << (answer ? (*answer).error().message : "");
    return answer && answer->has_value() ? **answer : http::Response{};
  }

  http::Response append(std::size_t i, const std::string& stream, const std::string& data) {
    http::Request request;
    request.method = "POST";
    request.target = "/streams/" + stream;
    request.headers.set("Content-Type", "application/json");
    request.headers.set("ES-EventType", "noted");
    request.headers.set("ES-EventId", system_random().uuid().to_string());
    request.body = data;
    return send(i, std::move(request));
  }

  json get(std::size_t i, const std::string& target) {
    http::Request request;
    request.target = target;
    request.headers.set("Accept", "application/json");
    const auto answer = send(i, std::move(request));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body, nullptr, false);
  }

  bool in_role() {
    int leaders = 0;
    int followers = 0;
    for (const auto& machine : machines) {
      const auto state = machine->node->inspection().state();
      leaders += state == api::NodeState::kLeader ? 1 : 0;
      followers += state == api::NodeState::kFollower ? 1 : 0;
    }
    return leaders == 1 && followers == 2;
  }

  bool level() {
    const auto first = machines[0]->node->inspection().positions();
    for (const auto& machine : machines) {
      const auto positions = machine->node->inspection().positions();
      if (positions.writer != first.writer || positions.committed != first.writer) {
        return false;
      }
    }
    return true;
  }

  test::TempDirectory directory;
  net::io_context context{1};
  net::thread_pool pool{1};
  node::PoolJobRunner jobs{pool.get_executor(), http::system_timers()};
  http::BeastClient client{context.get_executor()};
  std::vector<std::unique_ptr<Machine>> machines;
};

TEST_F(ThreeNodes, ElectReplicateScavengeAndResign) {
  ASSERT_TRUE(run_until([&] { return in_role(); }));
  const std::string large(3000, 'x');
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(append(static_cast<std::size_t>(i) % 3, "ledger", "\"" + large + "\"").status, 201);
  }
  http::Request metadata;
  metadata.method = "POST";
  metadata.target = "/streams/ledger/metadata";
  metadata.headers.set("Content-Type", "application/json");
  metadata.headers.set("ES-EventId", system_random().uuid().to_string());
  metadata.body = R"({"$maxCount":3})";
  ASSERT_EQ(send(1, metadata).status, 201);
  ASSERT_TRUE(run_until([&] { return level(); }));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(get(i, "/streams/ledger")["entries"].size(), 3U);
    EXPECT_EQ(get(i, "/gossip")["members"].size(), 3U);
  }

  for (std::size_t i = 0; i < 3; ++i) {
    http::Request start;
    start.method = "POST";
    start.target = std::string("/admin/scavenge") + (i == 0 ? "" : "?syncOnly=true");
    start.headers.set("Accept", "application/json");
    ASSERT_EQ(send(i, start).status, 200);
    ASSERT_TRUE(run_until(
        [&] { return machines[i]->node->inspection().running_scavenge() == std::nullopt; }));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const auto done = machines[i]->node->inspection().last_finished_point();
    ASSERT_TRUE(done.has_value()) << i;
    EXPECT_EQ(done->number, 0);
    EXPECT_EQ(get(i, "/streams/ledger")["entries"].size(), 3U);
  }

  http::Request resign;
  resign.method = "POST";
  resign.target = "/admin/node/resign";
  const auto epoch = machines[0]->node->inspection().positions().epoch_number;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(send(i, resign).status, 200);  // followers ignore it
  }
  ASSERT_TRUE(run_until([&] {
    return in_role() && machines[0]->node->inspection().positions().epoch_number > epoch;
  }));
  ASSERT_EQ(append(2, "after", "1").status, 201);
}

}  // namespace
}  // namespace verger
