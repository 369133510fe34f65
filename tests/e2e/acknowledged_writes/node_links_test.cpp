#include "tests/support/processes/node_links.h"

#include <array>
#include <atomic>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>
#include <thread>

#include "nodeagent/http/server.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/process.h"

namespace verger::test {
namespace {

constexpr std::chrono::milliseconds kDeadline{300};

/// Stands for a node: answers 200 to everything.
class Listener {
 public:
  Listener()
      : server_(
            context_.get_executor(), http::ServerOptions{},
            [this](http::Request) -> net::awaitable<http::Response> {
              ++requests;
              co_return http::Response{};
            },
            null_log()),
        port(server_.listen().value().port),
        thread_([this] {
          const auto work = net::make_work_guard(context_);
          context_.run();
        }) {}
  ~Listener() {
    context_.stop();
    thread_.join();
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  net::io_context context_{1};
  http::Server server_;

 public:
  const std::uint16_t port;
  std::atomic<int> requests = 0;

 private:
  std::thread thread_;
};

class NodeLinksTest : public testing::Test {
 protected:
  /// Where node `from` connects to in place of node `to`.
  std::string url(std::size_t from, std::size_t to) {
    const auto detours = links_.detours_of(from);
    const auto name = fmt::format("127.0.0.1:{}=", nodes_.at(to).port);
    const auto begin = detours.find(name) + name.size();
    return "http://" + detours.substr(begin, detours.find(',', begin) - begin);
  }
  /// What goes wrong when node `from` calls node `to` over a new connection.
  std::optional<Errc> error(std::size_t from, std::size_t to) {
    HttpsCaller caller({}, kDeadline);
    const auto answer = caller.get(url(from, to), "/");
    return answer ? std::nullopt : std::optional(answer.error().code);
  }

  std::array<Listener, 3> nodes_;
  NodeLinks links_{{{nodes_[0].port}, {nodes_[1].port}, {nodes_[2].port}}};
};

TEST_F(NodeLinksTest, LeadToTheNodesUntilTheyAreDown) {
  for (const std::size_t from : {0U, 1U, 2U}) {
    EXPECT_EQ(error(from, (from + 1) % 3), std::nullopt);
    EXPECT_EQ(error(from, (from + 2) % 3), std::nullopt);
  }
  links_.set_down(1, true);
  EXPECT_EQ(error(0, 1), Errc::kUnavailable);
  EXPECT_EQ(error(1, 0), std::nullopt);
  links_.set_down(1, false);
  EXPECT_EQ(error(0, 1), std::nullopt);
  EXPECT_EQ(links_.counts().reset + links_.counts().held, 0);
}

TEST_F(NodeLinksTest, RefuseOneWayOnly) {
  links_.refuse(0, 1);
  EXPECT_NE(error(0, 1), std::nullopt) << "the first is reset, sooner or later";
  EXPECT_EQ(error(0, 1), Errc::kUnavailable);
  EXPECT_EQ(error(0, 2), std::nullopt);
  EXPECT_EQ(error(1, 0), std::nullopt);
  EXPECT_EQ(links_.counts().reset, 1);
  links_.heal(1, 0, NodeLinks::Held::kArrives);
  EXPECT_EQ(error(0, 1), std::nullopt);
  EXPECT_EQ(nodes_[1].requests, 1);
}

TEST_F(NodeLinksTest, HoldOneWayOfAConnectionAndMakeNoNewOnes) {
  for (const auto held : {NodeLinks::Held::kArrives, NodeLinks::Held::kLost}) {
    const auto before = nodes_[1].requests.load();
    links_.silence(1, 0);
    EXPECT_EQ(error(0, 1), Errc::kUnknownOutcome);
    EXPECT_EQ(error(1, 0), Errc::kUnknownOutcome);
    EXPECT_EQ(error(2, 0), std::nullopt);
    EXPECT_EQ(nodes_[1].requests, before);
    links_.heal(0, 1, held);
    EXPECT_EQ(error(0, 1), std::nullopt);
    const int late = held == NodeLinks::Held::kArrives ? 1 : 0;
    EXPECT_TRUE(eventually(std::chrono::seconds(30),
                           [&] { return nodes_[1].requests == before + 1 + late; }));
  }
  EXPECT_GE(links_.counts().held, 4);
}

TEST_F(NodeLinksTest, HoldTheAnswerOnAnOpenConnection) {
  HttpsCaller caller({}, kDeadline);
  ASSERT_TRUE(caller.get(url(0, 1), "/"));
  links_.silence(1, 0);
  EXPECT_FALSE(caller.post(url(0, 1), "/"));
  EXPECT_EQ(nodes_[1].requests, 2) << "it arrived, the answer did not";
  links_.heal(0, 1, NodeLinks::Held::kLost);
  EXPECT_TRUE(caller.get(url(0, 1), "/"));
}

}  // namespace
}  // namespace verger::test
