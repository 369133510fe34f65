#pragma once

#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/agent.h"
#include "tests/support/cluster/sim_world.h"
#include "tests/support/results.h"

namespace verger::agent {

/// An agent in virtual time beside a server that it stops and starts, whose database lies at /db on
/// a disk in memory. It is asked from another host, may die at any moment, and is opened again on
/// the disk as it is.
class MortalAgentCase {
 public:
  using json = nlohmann::json;

  /// 0: no answer.
  int status(std::string method, std::string target, const json& body = json::object()) {
    std::optional<Result<http::Response>> got;
    asker_.spawn([](testing::SimHost& from, http::Request request,
                    std::optional<Result<http::Response>>& into) -> net::awaitable<void> {
      into = co_await from.client().send({.tls = false, .host = "n1", .port = kAgentPort},
                                         std::move(request), std::chrono::milliseconds(2'000));
    }(asker_, {.method = std::move(method), .target = std::move(target), .body = body.dump()},
                                                                 got));
    world_.run_until([&] { return got.has_value(); }, std::chrono::milliseconds(5'000));
    const bool answered = got && *got;
    answer = answered ? json::parse((*got)->body, nullptr, false) : json();
    return answered ? (*got)->status : 0;
  }
  /// Requests it, with a permit.
  std::string begin(const std::string& kind, const json& parameters) {
    const auto id = "o" + std::to_string(++operations_);
    status("POST", "/agent/v1/permits",
           {{"controllerEpoch", 1}, {"run", "r"}, {"step", "s"}, {"validForMs", 60'000}});
    status("POST", "/agent/v1/operations",
           {{"id", id},
            {"run", "r"},
            {"step", "s"},
            {"controllerEpoch", 1},
            {"kind", kind},
            {"parameters", parameters}});
    return id;
  }
  /// Its status once it has ended.
  json ended(const std::string& id) {
    for (int looks = 0; looks < 3'000; ++looks) {
      if (const auto code = status("GET", "/agent/v1/operations/" + id);
          code != 200 || !answer.value("finishedAt", "").empty()) {
        return answer;
      }
      world_.run_for(std::chrono::milliseconds(100));
    }
    ADD_FAILURE() << "has not ended: " << answer;
    return answer;
  }
  json run(const std::string& kind, const json& parameters = json::object()) {
    return ended(begin(kind, parameters));
  }

  testing::SimWorld world_{1};
  testing::SimHost& host_;
  testing::SimHost& asker_;
  json answer;
  std::unique_ptr<node::JobRunner> runner_;
  std::unique_ptr<external::OfflineServer> offline_;

 protected:
  MortalAgentCase() : host_(world_.add_host("n1")), asker_(world_.add_host("controller")) {
    asker_.boot();
  }

  /// A new process of the agent; one that runs is killed. `node`: the host that its server answers
  /// on. `more`: of the environment, once all else of it is there.
  void open_agent(external::ServiceOptions::OwnServer server, const std::string& node,
                  std::function<node::NodeInspection*()> inspection,
                  const std::function<void(AgentEnvironment&)>& more) {
    if (host_.up()) {
      host_.crash(/*power=*/false);
    }
    host_.boot();
    runner_ = std::make_unique<node::InlineJobRunner>(host_.timers(), Budget{.units = 64});
    offline_ = std::make_unique<external::OfflineServer>(
        external::DatabasePlace{.database = "/db", .index = {}},
        external::ServiceOptions{.own = std::move(server)}, host_.disk(), host_.clock(), random_,
        host_.timers(), *runner_, *runner_, null_log(), "/agent/server-kept-stopped");
    AgentEnvironment environment{.executor = host_.executor(),
                                 .files = host_.disk(),
                                 .clock = host_.clock(),
                                 .timers = host_.timers(),
                                 .client = host_.client(),
                                 .jobs = *runner_,
                                 .log = null_log(),
                                 .inspection = std::move(inspection),
                                 .offline = offline_.get()};
    more(environment);
    auto opened = Agent::open({.journal = "/agent/journal.db",
                               .node = {.tls = false, .host = node, .port = 2113},
                               .poll_interval = std::chrono::milliseconds(100)},
                              std::move(environment));
    ASSERT_TRUE(opened) << opened.error().message;
    const std::shared_ptr<Agent> agent = *std::move(opened);
    host_.keep(agent);
    host_.serve_http(kAgentPort, agent->handler());
    agent->start();
  }

  SeededRandom random_{7};

 private:
  static constexpr std::uint16_t kAgentPort = 2114;

  int operations_ = 0;
};

}  // namespace verger::agent
