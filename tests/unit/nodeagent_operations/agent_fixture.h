#pragma once

#include <chrono>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "nodeagent/operations/agent.h"
#include "nodeagent/operations/backup/backup_access.h"
#include "tests/support/cluster/sim_world.h"
#include "tests/support/member_case.h"

namespace verger::agent {

/// An agent in virtual time, and what it answers. Its node is what a test serves on port 2113.
class AgentFixture : public ::testing::Test {
 protected:
  using json = nlohmann::json;

  AgentFixture() : host_(world_.add_host("n1")) {
    host_.boot();
    runner_ = std::make_unique<node::InlineJobRunner>(host_.timers());
  }

  /// Again: in place of the former one, which ends as in a crash.
  void open_agent(std::function<node::NodeInspection*()> inspection) {
    agent_ = nullptr;
    auto opened = Agent::open({.journal = "/agent/journal.db",
                               .node = {.tls = false, .host = "n1", .port = 2113},
                               .poll_interval = std::chrono::milliseconds(100)},
                              {.executor = host_.executor(),
                               .files = host_.disk(),
                               .clock = host_.clock(),
                               .timers = host_.timers(),
                               .client = host_.client(),
                               .jobs = *runner_,
                               .log = null_log(),
                               .inspection = std::move(inspection),
                               .online = online_,
                               .backups = backups_});
    ASSERT_TRUE(opened) << opened.error().message;
    agent_ = *std::move(opened);
    agent_->start();
  }
  /// "204", or "409 refused"; the body is in `answer_`.
  std::string ask(std::string method, std::string target, const json& body = {}) {
    return ask_raw(std::move(method), std::move(target), body.dump());
  }
  std::string ask_raw(std::string method, std::string target, std::string body) {
    std::optional<http::Response> got;
    host_.spawn(
        [](http::Handler handler, http::Request request, std::optional<http::Response>& into)
            -> net::awaitable<void> { into = co_await handler(std::move(request)); }(
                agent_->handler(),
                {.method = std::move(method), .target = std::move(target), .body = std::move(body)},
                got));
    EXPECT_TRUE(
        world_.run_until([&] { return got.has_value(); }, std::chrono::milliseconds(40'000)));
    answer_ = json::parse(got->body, nullptr, false);
    EXPECT_THAT(test::not_camel_case(answer_), ::testing::IsEmpty());
    const auto code = answer_.is_object() ? answer_.value("code", "") : "";
    return std::to_string(got->status) + (code.empty() ? "" : " " + code);
  }
  std::string permit(std::int64_t epoch, std::int64_t valid_for_ms = 60'000) {
    return ask(
        "POST", "/agent/v1/permits",
        {{"controllerEpoch", epoch}, {"run", "r"}, {"step", "s"}, {"validForMs", valid_for_ms}});
  }
  std::string operate(const std::string& id, const std::string& kind, const json& parameters,
                      std::int64_t epoch) {
    return ask("POST", "/agent/v1/operations",
               {{"id", id},
                {"run", "r"},
                {"step", "s"},
                {"controllerEpoch", epoch},
                {"kind", kind},
                {"parameters", parameters}});
  }
  json look(const std::string& id) {
    EXPECT_EQ(ask("GET", "/agent/v1/operations/" + id), "200");
    return answer_;
  }
  /// The operation's status once it has ended.
  json ended(const std::string& id) {
    for (int looks = 0; looks < 3'000; ++looks) {
      auto status = look(id);
      if (!status.value("finishedAt", "").empty()) {
        return status;
      }
      world_.run_for(std::chrono::milliseconds(100));
    }
    ADD_FAILURE() << "has not ended: " << answer_;
    return answer_;
  }

  testing::SimWorld world_{1};
  testing::SimHost& host_;
  std::unique_ptr<node::JobRunner> runner_;
  // Of agents that are opened from now on:
  std::shared_ptr<const BackupAccess> backups_;
  external::OnlineAccess* online_ = nullptr;
  std::unique_ptr<Agent> agent_;
  json answer_;
};

}  // namespace verger::agent
