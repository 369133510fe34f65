// A former leader has records that no other node has; when it comes back it has to truncate, and is
// killed (SIGKILL) at named places of that. It starts again, truncates, and the cluster is whole.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "nodeagent/http/beast_client.h"
#include "tests/support/processes/real_cluster.h"

namespace verger::test {
namespace {

using std::chrono::seconds;

/// One request, waited for; status 0: no answer.
http::Response ask(const std::string& url, http::Request request) {
  net::io_context context;
  http::BeastClient client(context.get_executor());
  http::Response answer{.status = 0};
  const auto endpoint = http::parse_endpoint(url);
  const auto work = [](http::BeastClient& by, http::Endpoint to, http::Request what,
                       http::Response& out) -> net::awaitable<void> {
    if (auto got = co_await by.send(std::move(to), std::move(what), seconds(8))) {
      out = *std::move(got);
    }
  };
  net::co_spawn(context, work(client, *endpoint, std::move(request), answer),
                [&context](const std::exception_ptr&) { context.stop(); });
  context.run();
  return answer;
}

bool leads(const std::string& url) {
  const auto info = ask(url, {.target = "/info"});
  const auto json = nlohmann::json::parse(info.body, nullptr, false);
  return json.is_object() && json.value("state", "") == "leader";
}

http::Response append(const std::string& url, const std::string& id) {
  http::Request request{.method = "POST", .target = "/streams/truncation"};
  request.headers.set("Content-Type", "application/json");
  request.headers.set("ES-EventType", "noted");
  request.headers.set("ES-EventId", id);
  request.body = "{}";
  return ask(url, std::move(request));
}

class TruncationTournament : public testing::TestWithParam<const char*> {};

TEST_P(TruncationTournament, EndsRightAfterAKill) {
  const TempDirectory directory;
  const auto reached = directory.path() / "reached";
  RealCluster cluster;
  const auto find_leader = [&](std::optional<std::size_t> but) {
    std::optional<std::size_t> found;
    eventually(seconds(30), [&] {
      for (std::size_t i = 0; i < RealCluster::kNodes && !found; ++i) {
        found = i != but && leads(cluster.node_url(i)) ? std::optional(i) : std::nullopt;
      }
      return found.has_value();
    });
    return found;
  };
  for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
    cluster.start_node(i);
  }
  const auto former = find_leader(std::nullopt);
  ASSERT_TRUE(former.has_value()) << cluster.logs();
  ASSERT_TRUE(eventually(seconds(30), [&] {
    return append(cluster.node_url(*former), "00000000-0000-4000-8000-000000000001").status == 201;
  })) << cluster.logs();

  // Alone, it writes what no other node will have.
  const auto one = (*former + 1) % RealCluster::kNodes;
  const auto other = (*former + 2) % RealCluster::kNodes;
  cluster.node(one).kill();
  cluster.node(other).kill();
  const auto lost = append(cluster.node_url(*former), "00000000-0000-4000-8000-000000000002");
  EXPECT_NE(lost.status, 201);
  cluster.node(*former).kill();
  cluster.start_node(one);
  cluster.start_node(other);
  const auto fresh = find_leader(former);
  ASSERT_TRUE(fresh.has_value()) << cluster.logs();
  ASSERT_TRUE(eventually(seconds(30), [&] {
    return append(cluster.node_url(*fresh), "00000000-0000-4000-8000-000000000003").status == 201;
  })) << cluster.logs();

  cluster.start_node(
      *former, {{"VERGER_FAILPOINT", GetParam()}, {"VERGER_FAILPOINT_LOG", reached.string()}});
  ASSERT_TRUE(cluster.node(*former).wait(seconds(30)).has_value()) << cluster.logs();
  EXPECT_NE(file_text(reached).find(GetParam()), std::string::npos) << "never reached";
  EXPECT_EQ(cluster.restart_dead(), 1);
  const auto events = [&](std::size_t i) {
    http::Request page{.target = "/streams/truncation/0/forward/10"};
    page.headers.set("Accept", "application/json");
    const auto answer = ask(cluster.node_url(i), std::move(page));
    const auto json = nlohmann::json::parse(answer.body, nullptr, false);
    return json.is_object() && json.contains("entries") ? json["entries"].size() : 0;
  };
  EXPECT_TRUE(eventually(seconds(30), [&] { return events(*former) == 2; })) << cluster.logs();
  EXPECT_EQ(events(*fresh), 2U);
}

INSTANTIATE_TEST_SUITE_P(Node, TruncationTournament,
                         testing::Values("node.truncate.before", "log.truncate.after-delete",
                                         "log.truncate.before-checkpoints", "node.truncate.after"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace verger::test
