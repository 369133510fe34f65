#pragma once

#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "controller/api/api.h"
#include "tests/support/controller/controller_harness.h"
#include "tests/support/controller/fixed_bootstrap_token.h"

namespace verger::controller::testing {

/// The API over a fake cluster that is called "prod", without sockets.
class ApiHarness {
 public:
  ApiHarness() {
    h.make_hours = [this](Journal& journal, ControllerEpoch epoch) {
      book = std::make_unique<PolicyBook>(journal, epoch, defaults);
      EXPECT_TRUE(book->load().has_value());
      return book.get();
    };
    boot();
    h.register_cluster();
  }
  ~ApiHarness() { crash(); }
  ApiHarness(const ApiHarness&) = delete;
  ApiHarness& operator=(const ApiHarness&) = delete;

  void boot() {
    h.boot();
    scheduler = std::make_unique<Scheduler>(SchedulerParts{.executor = h.context->get_executor(),
                                                           .journal = *h.journal,
                                                           .registry = *h.registry,
                                                           .book = *book,
                                                           .runs = *h.executor,
                                                           .network = h.network(),
                                                           .epoch = h.epoch});
    retention = std::make_unique<Retention>(RetentionParts{.journal = *h.journal,
                                                           .runs = *h.executor,
                                                           .clock = h.time,
                                                           .log = null_log(),
                                                           .epoch = h.epoch,
                                                           .files = h.disk,
                                                           .archive = "/state/archive",
                                                           .rules = {}});
    access = std::make_unique<Access>(*h.journal, random, h.epoch, h.time, null_log(), &bootstrap);
    EXPECT_TRUE(access->load().has_value());
    if (make_agents) {
      agents = make_agents(*h.journal, h.epoch);
    }
    notifier = std::make_unique<Notifier>(NotifierParts{.executor = h.context->get_executor(),
                                                        .journal = *h.journal,
                                                        .runs = *h.executor,
                                                        .book = *book,
                                                        .network = h.network(),
                                                        .run_command = {},
                                                        .registry = h.registry.get(),
                                                        .epoch = h.epoch});
    api = std::make_unique<Api>(ApiParts{.executor = *h.executor,
                                         .registry = *h.registry,
                                         .journal = *h.journal,
                                         .observer = h.executor->observer(),
                                         .network = h.network(),
                                         .timers = h.time,
                                         .epoch = h.epoch,
                                         .policy = defaults,
                                         .book = *book,
                                         .scheduler = *scheduler,
                                         .clock = h.time,
                                         .access = *access,
                                         .log = null_log(),
                                         .agents = agents.get(),
                                         .admit_command = admit_command,
                                         .notifier = notifier.get(),
                                         .retention = retention.get()});
  }
  void crash() {
    api.reset();
    notifier.reset();
    agents.reset();
    access.reset();
    retention.reset();
    scheduler.reset();
    h.crash();
  }

  http::Response call(const std::string& method, const std::string& path,
                      const nlohmann::json& body = nullptr, http::Headers headers = {}) {
    http::Request request;
    request.method = method;
    request.target =
        path.starts_with("/metrics") || path.starts_with("/other") ? path : "/api/v1" + path;
    request.headers = std::move(headers);
    if (!token.empty()) {
      request.headers.set("Authorization", "Bearer " + token);
    }
    request.peer.address = from;
    if (!body.is_null()) {
      request.body = body.is_string() ? body.get<std::string>() : body.dump();
    }
    return h.wait_for(api->handler()(std::move(request)));
  }
  static nlohmann::json json_of(const http::Response& response) {
    return nlohmann::json::parse(response.body, nullptr, false);
  }
  nlohmann::json get(const std::string& path) { return json_of(call("GET", path)); }
  /// The stable code of a refusal.
  static std::string code_of(const http::Response& response) {
    return json_of(response).value("code", std::string());
  }
  std::string planned() {
    return json_of(call("POST", "/clusters/prod/plans", {{"operation", "scavenge"}})).at("hash");
  }

  /// A new token's secret.
  std::string create_token(const std::string& name, const std::string& role) {
    const auto made = call("POST", "/tokens", {{"name", name}, {"role", role}});
    EXPECT_EQ(made.status, 201) << made.body;
    return json_of(made).value("token", std::string());
  }
  /// Of a run of the plan of planned(), which has ended.
  std::string run_to_its_end() {
    const std::string id = json_of(call("POST", "/plans/" + planned() + "/apply")).at("id");
    EXPECT_TRUE(h.run_to_end(id));
    return id;
  }

  test::ControllerHarness h;
  SeededRandom random{3};
  test::FixedBootstrapToken bootstrap;
  /// Set before boot(): what plans and policies do not say.
  planner::Policy defaults = test::ControllerHarness::quick_policy();
  /// Set before boot().
  std::function<Result<void>(const std::string&)> admit_command;
  /// Set before boot(): without it agents cannot enrol.
  std::function<std::unique_ptr<AgentBook>(Journal&, ControllerEpoch)> make_agents;
  std::unique_ptr<AgentBook> agents;
  std::unique_ptr<PolicyBook> book;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<Retention> retention;
  std::unique_ptr<Access> access;
  std::unique_ptr<Notifier> notifier;
  std::unique_ptr<Api> api;
  std::string from = "127.0.0.1";  ///< the caller's address
  std::string token = test::FixedBootstrapToken::kText;
};

}  // namespace verger::controller::testing
