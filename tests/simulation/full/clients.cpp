#include "tests/simulation/full/clients.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace verger::sim {

using nlohmann::json;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kDeadline{4000};
constexpr int kStreams = 3;

net::awaitable<Result<http::Response>> call(testing::SimHost& host, std::string method,
                                            std::string path, std::string body) {
  http::Request request;
  request.method = std::move(method);
  request.target = "/api/v1" + path;
  request.headers.set("Content-Type", "application/json");
  request.body = std::move(body);
  co_return co_await host.client().send(endpoint(kController, kControllerPort), std::move(request),
                                        kDeadline);
}

std::string text_of(const Result<http::Response>& answer) {
  return answer ? fmt::format("{} {}", answer->status, answer->body) : answer.error().message;
}

std::string member(const std::string& body, const char* name) {
  const auto parsed = json::parse(body, nullptr, false);
  return parsed.is_object() ? parsed.value(name, std::string()) : std::string();
}

std::string cluster_json() {
  auto nodes = json::array();
  for (const auto name : kNodes) {
    nodes.push_back({{"name", name},
                     {"node", endpoint(name, kNodePort).url()},
                     {"agent", endpoint(name, kAgentPort).url()}});
  }
  return json{{"name", kClusterName}, {"nodes", nodes}, {"credentials", ""}}.dump();
}

}  // namespace

Person::Person(Cluster& cluster) : cluster_(cluster), state_(std::make_shared<State>()) {}

void Person::begin() {
  auto& host = cluster_.world().host(std::string(kPerson));
  host.spawn(work(host, state_));
}

net::awaitable<void> Person::work(testing::SimHost& host, std::shared_ptr<State> state) {
  // The cluster: the second time it is there already.
  for (;;) {
    const auto added = co_await call(host, "POST", "/clusters", cluster_json());
    if (added && (added->status == 201 || member(added->body, "code") == "cluster_exists")) {
      break;
    }
    state->obstacle = "cluster not registered: " + text_of(added);
    co_await host.timers().sleep_for(milliseconds(300));
  }
  while (state->run.empty()) {
    const auto runs = co_await call(host, "GET", fmt::format("/runs?cluster={}", kClusterName), {});
    if (runs && runs->status == 200) {
      const auto listed = json::parse(runs->body, nullptr, false);
      if (listed.is_object() && !listed["runs"].empty()) {
        state->run = listed["runs"].back().value("id", std::string());
        break;
      }
      const auto plan = co_await call(host, "POST", fmt::format("/clusters/{}/plans", kClusterName),
                                      R"({"operation":"scavenge","parameters":{}})");
      if (plan && plan->status == 201) {
        const auto hash = member(plan->body, "hash");
        const auto applied =
            co_await call(host, "POST", fmt::format("/plans/{}/apply", hash), "{}");
        state->obstacle = "not applied: " + text_of(applied);
      } else {
        state->obstacle = "not planned: " + text_of(plan);
      }
    } else {
      state->obstacle = "runs not listed: " + text_of(runs);
    }
    co_await host.timers().sleep_for(milliseconds(300));
  }
}

void Person::ask_for_run() {
  auto& host = cluster_.world().host(std::string(kPerson));
  state_->view.clear();
  host.spawn([](testing::SimHost& on, std::shared_ptr<State> state) -> net::awaitable<void> {
    const auto view = co_await call(on, "GET", "/runs/" + state->run, {});
    if (view && view->status == 200) {
      state->view = view->body;
    }
  }(host, state_));
}

void Person::send_intent(std::string intent) {
  auto& host = cluster_.world().host(std::string(kPerson));
  host.spawn([](testing::SimHost& on, std::shared_ptr<State> state,
                std::string what) -> net::awaitable<void> {
    static_cast<void>(
        co_await call(on, "POST", fmt::format("/runs/{}/{}", state->run, what), "{}"));
  }(host, state_, std::move(intent)));
}

Writer::Writer(Cluster& cluster, std::uint64_t seed)
    : cluster_(cluster), state_(std::make_shared<State>(seed)) {}

void Writer::begin() {
  auto& host = cluster_.world().host(std::string(kWriter));
  host.spawn(work(host, state_));
}

net::awaitable<void> Writer::work(testing::SimHost& host, std::shared_ptr<State> state) {
  std::array<std::int64_t, kStreams> next{};
  while (!state->finishing) {
    co_await host.timers().sleep_for(milliseconds(100 + state->random.below(400)));
    const auto which = state->random.below(kStreams);
    const auto stream = fmt::format("written-{}", which);
    const auto id = state->random.uuid().to_string();
    for (bool written = false; !written;) {
      http::Request request;
      request.method = "POST";
      request.target = "/streams/" + stream;
      request.headers.set("Content-Type", "application/json");
      request.headers.set("ES-EventType", "w");
      request.headers.set("ES-EventId", id);
      request.headers.set("ES-ExpectedVersion", std::to_string(next.at(which) - 1));
      request.body = fmt::format(R"({{"n":{},"by":"writer"}})", next.at(which));
      const auto node = kNodes.at(state->random.below(kNodes.size()));
      const auto answer =
          co_await host.client().send(endpoint(node, kNodePort), std::move(request), kDeadline);
      if (answer && answer->status == 201) {
        state->acknowledged.push_back({stream, next.at(which), id});
        ++next.at(which);
        written = true;
      } else if (answer && answer->status == 400) {
        state->complaints.push_back(fmt::format("{} refused event {} of {}: {} {}", node,
                                                next.at(which), stream, answer->reason,
                                                answer->body));
        state->finished = true;
        co_return;
      } else {
        co_await host.timers().sleep_for(milliseconds(200));
      }
    }
  }
  state->finished = true;
}

}  // namespace verger::sim
