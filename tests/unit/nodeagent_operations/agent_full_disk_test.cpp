#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nodeagent/operations/agent.h"
#include "tests/support/cluster/sim_world.h"

namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr std::uint16_t kNodePort = 2113;
constexpr std::uint16_t kAgentPort = 2114;

/// An agent on a machine of its own, and its node, which counts the requests to it.
struct Machine {
  Machine() : host(world.add_host("n1")), asker(world.add_host("p")) {
    host.boot();
    asker.boot();
    runner = std::make_unique<node::InlineJobRunner>(host.timers());
    host.serve_http(kNodePort, [this](http::Request request) -> net::awaitable<http::Response> {
      asked_to_act += request.method == "POST" ? 1 : 0;
      co_return http::Response{.status = 404};
    });
    auto opened = Agent::open({.journal = "/agent/journal.db",
                               .node = {.tls = false, .host = "n1", .port = kNodePort},
                               .poll_interval = milliseconds(100)},
                              {.executor = host.executor(),
                               .files = host.disk(),
                               .clock = host.clock(),
                               .timers = host.timers(),
                               .client = host.client(),
                               .jobs = *runner,
                               .log = null_log(),
                               // Looked at after the operation was accepted and before it acts.
                               .inspection = [this]() -> node::NodeInspection* {
                                 fill_disk();
                                 return nullptr;
                               }});
    EXPECT_TRUE(opened);
    std::shared_ptr<Agent> agent = std::move(*opened);
    host.keep(agent);
    host.serve_http(kAgentPort, agent->handler());
    agent->start();
  }

  void fill_disk() {
    host.disk().set_fault_hook([](const DiskOperation& operation) -> std::optional<Error> {
      if (operation.kind == "write") {
        return Error{Errc::kNoSpace, operation.path.string() + ": no space left"};
      }
      return std::nullopt;
    });
  }

  json ask(std::string method, std::string target, std::string body = {}) {
    std::optional<Result<http::Response>> answer;
    asker.spawn([](Machine& self, http::Request request,
                   std::optional<Result<http::Response>>& into) -> net::awaitable<void> {
      into = co_await self.asker.client().send({.tls = false, .host = "n1", .port = kAgentPort},
                                               std::move(request), milliseconds(500));
    }(*this, {.method = std::move(method), .target = std::move(target), .body = std::move(body)},
                                                                answer));
    EXPECT_TRUE(world.run_until([&] { return answer.has_value(); }, milliseconds(1000)));
    EXPECT_TRUE(*answer);
    return json::parse((*answer)->body, nullptr, false);
  }

  testing::SimWorld world{1};
  testing::SimHost& host;
  testing::SimHost& asker;
  std::unique_ptr<node::JobRunner> runner;
  int asked_to_act = 0;
};

TEST(AgentWithFullDisk, SaysThatNothingWasDoneOnceItCanWriteAgain) {
  Machine machine;
  ASSERT_FALSE(HasFailure());
  machine.ask("POST", "/agent/v1/permits",
              R"({"controllerEpoch":1,"run":"r","step":"s","validForMs":60000})");
  const auto accepted = machine.ask(
      "POST", "/agent/v1/operations",
      R"({"id":"o1","run":"r","step":"s","controllerEpoch":1,"kind":"set_priority","parameters":{"priority":-1}})");
  EXPECT_EQ(accepted.value("state", ""), "accepted") << accepted;
  machine.world.run_for(milliseconds(2000));
  EXPECT_EQ(machine.ask("GET", "/agent/v1/operations/o1").value("state", ""), "accepted");

  machine.host.disk().set_fault_hook(nullptr);
  machine.world.run_for(milliseconds(500));
  const auto ended = machine.ask("GET", "/agent/v1/operations/o1");
  EXPECT_EQ(ended.value("state", ""), "failed") << ended;
  EXPECT_NE(ended.dump().find("not_happened"), std::string::npos) << ended;
  EXPECT_EQ(machine.asked_to_act, 0);
}

}  // namespace
}  // namespace verger::agent
