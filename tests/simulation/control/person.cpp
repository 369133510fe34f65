#include "tests/simulation/control/person.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_view.h"

namespace verger::sim {

using nlohmann::json;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kDeadline{12'000};
constexpr milliseconds kAgain{1'500};
/// What is refused a third time is for a reason that lasts.
constexpr milliseconds kMuchLater{4'500};
constexpr int kSoonAgain = 2;

net::awaitable<Result<http::Response>> call(Site& site, std::string method, std::string path,
                                            std::string body) {
  http::Request request;
  request.method = std::move(method);
  request.target = "/api/v1" + path;
  request.headers.set("Content-Type", "application/json");
  request.body = std::move(body);
  auto& host = site.world().host("p");
  const auto to = site.acting_host();
  co_return co_await host.client().send({.tls = false, .host = to, .port = kModelControllerPort},
                                        std::move(request), kDeadline);
}

std::string text_of(const Result<http::Response>& answer) {
  return answer ? fmt::format("{} {}", answer->status, answer->body) : answer.error().message;
}

std::string member(api::JsonView object, std::string_view name) {
  const auto found = object.find(name);
  return found && found->is_string() ? found->string() : std::string();
}

std::string member(const std::string& body, std::string_view name) {
  const auto parsed = api::JsonDocument::parse(body, "answer");
  return parsed ? member(parsed->root(), name) : std::string();
}

/// Of the run that is last in the list; empty: there is none.
std::string last_run(const std::string& body) {
  const auto listed = api::JsonDocument::parse(body, "runs");
  const auto runs = listed ? listed->root().find("runs") : std::nullopt;
  return runs && !runs->values().empty() ? member(runs->values().back(), "id") : std::string();
}

std::string cluster_json(Site& site) {
  auto nodes = json::array();
  for (const auto& name : site.model().hosts()) {
    const auto scheme = site.options().tls ? "https" : "http";
    json node{{"name", name}, {"node", fmt::format("{}://{}:{}", scheme, name, kModelNodePort)}};
    if (site.has_agents()) {
      node["agent"] = fmt::format("{}://{}:{}", scheme, Site::agent_of(name), kModelAgentPort);
    }
    nodes.push_back(std::move(node));
  }
  return json{{"name", "sim"}, {"nodes", nodes}, {"credentials", ""}}.dump();
}

}  // namespace

Operator::Operator(Site& site, const Scenario& scenario)
    : site_(site), scenario_(scenario), state_(std::make_shared<State>()) {}

void Operator::begin() { site_.world().host("p").spawn(work(site_, scenario_, state_)); }

net::awaitable<void> Operator::work(Site& site, const Scenario& scenario,
                                    std::shared_ptr<State> state) {
  auto& timers = site.world().host("p").timers();
  for (;;) {
    const auto added = co_await call(site, "POST", "/clusters", cluster_json(site));
    if (added && (added->status == 201 || member(added->body, "code") == "cluster_exists")) {
      break;
    }
    state->obstacle = "cluster not registered: " + text_of(added);
    co_await timers.sleep_for(kAgain);
  }
  while (!scenario.policy_yaml.empty()) {
    const auto applied =
        co_await call(site, "PUT", "/policies/hours", json{{"yaml", scenario.policy_yaml}}.dump());
    if (applied && (applied->status == 200 || applied->status == 201)) {
      break;
    }
    state->obstacle = "policy not applied: " + text_of(applied);
    co_await timers.sleep_for(kAgain);
  }
  for (int refused = 0;;) {
    const auto runs = co_await call(site, "GET", "/runs?cluster=sim", {});
    if (!runs || runs->status != 200) {
      state->obstacle = "runs not listed: " + text_of(runs);
      co_await timers.sleep_for(kAgain);
      continue;
    }
    if (auto run = last_run(runs->body); !run.empty()) {
      state->run = std::move(run);
      co_return;
    }
    if (scenario.scheduled && !state->by_hand) {
      state->obstacle = "the schedule has not started a run";
      co_await timers.sleep_for(milliseconds(15'000));
      continue;
    }
    const auto plan = co_await call(site, "POST", "/clusters/sim/plans",
                                    R"({"operation":"scavenge","parameters":{}})");
    if (plan && plan->status == 201) {
      const auto applied = co_await call(
          site, "POST", fmt::format("/plans/{}/apply", member(plan->body, "hash")), "{}");
      if (applied && applied->status == 202) {
        state->run = member(applied->body, "id");
        co_return;
      }
      state->obstacle = "not applied: " + text_of(applied);
    } else {
      state->obstacle = "not planned: " + text_of(plan);
      if (plan && plan->status == 422) {
        ++refused;
        if (state->on_refused) {
          state->on_refused(plan->body);
        }
      }
    }
    co_await timers.sleep_for(refused > kSoonAgain ? kMuchLater : kAgain);
  }
}

void Operator::send(const Intent& intent) {
  const auto path = intent.path.empty() ? fmt::format("/clusters/sim/{}", intent.what)
                                        : fmt::format("/runs/{}/{}", state_->run, intent.what);
  site_.world().host("p").spawn(
      [](Site& site, std::string to, std::string body) -> net::awaitable<void> {
        static_cast<void>(co_await call(site, "POST", std::move(to), std::move(body)));
      }(site_, path, intent.body));
}

void Operator::change_policy(const std::string& yaml) {
  site_.world().host("p").spawn([](Site& site, std::string body) -> net::awaitable<void> {
    static_cast<void>(co_await call(site, "PUT", "/policies/hours", std::move(body)));
  }(site_, json{{"yaml", yaml}}.dump()));
}

}  // namespace verger::sim
