#include "tests/bench/cluster/strategies_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/random.h"
#include "tests/bench/cluster/ended_run.h"
#include "tests/support/processes/https_caller.h"

namespace verger::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using test::RealCluster;

/// Of the client alone, before the run.
constexpr auto kAlone = seconds(15);
/// 50 writes and as many reads a second.
constexpr milliseconds kBetweenCalls{20};

/// Times of calls in milliseconds.
struct Latencies {
  std::vector<double> writes;
  std::vector<double> reads;
  int failed = 0;
};

std::string percentiles(std::vector<double> times) {
  if (times.empty()) {
    return "-";
  }
  std::ranges::sort(times);
  const auto at = [&times](double part) {
    return times[std::min(times.size() - 1,
                          static_cast<std::size_t>(part * static_cast<double>(times.size())))];
  };
  return fmt::format("{:.1f} / {:.1f}", at(0.5), at(0.99));
}

/// Appends an event and reads the head of a stream, in turn and at a steady pace, at the next node
/// where one refuses: what a client of the cluster waits for.
class Client {
 public:
  explicit Client(const RealCluster& cluster) : cluster_(cluster), thread_([this] { work(); }) {}
  ~Client() { static_cast<void>(end()); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Latencies end() {
    stop_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
    return seen_;
  }

 private:
  void work() {
    for (auto due = steady_clock::now(); !stop_; due += kBetweenCalls) {
      std::this_thread::sleep_until(due);
      call({.method = "POST",
            .target = "/streams/measured",
            .headers = {{"Content-Type", "application/json"},
                        {"ES-EventType", "measured"},
                        {"ES-EventId", system_random().uuid().to_string()}},
            .body = R"({"some":"data"})"},
           201, seen_.writes);
      call({.method = "GET",
            .target = "/streams/measured/head/backward/1?embed=body",
            .headers = {{"Accept", "application/json"}, {"ES-RequireLeader", "false"}}},
           200, seen_.reads);
    }
  }
  void call(const http::Request& request, int wanted, std::vector<double>& times) {
    const auto begun = steady_clock::now();
    for (std::size_t tries = 0; tries < RealCluster::kNodes; ++tries) {
      const auto answer = caller_.ask(cluster_.node_url(node_), request);
      if (answer && answer->status == wanted) {
        times.push_back(
            std::chrono::duration<double, std::milli>(steady_clock::now() - begun).count());
        return;
      }
      node_ = (node_ + 1) % RealCluster::kNodes;
    }
    ++seen_.failed;
  }

  const RealCluster& cluster_;
  test::HttpsCaller caller_;
  std::size_t node_ = 0;
  std::atomic<bool> stop_ = false;
  Latencies seen_;
  std::thread thread_;
};

void measure(std::string_view strategy, const std::filesystem::path& files) {
  RealCluster cluster({.separate_agents = true,
                       .files = files,
                       .fast = false,
                       .role = "node",
                       .services = true,
                       .agent_arguments = {"--enable-unix-socket"},
                       .life = kRunLimit});
  cluster.start_all();
  cluster.register_cluster();
  Latencies alone;
  {
    Client client(cluster);
    std::this_thread::sleep_for(kAlone);
    alone = client.end();
  }
  const test::TempDirectory directory;
  const auto policy = directory.path() / "policy.yaml";
  // Without the minutes for which a leader should have led: nothing is done in them.
  std::ofstream(policy) << fmt::format(
      "name: {0}\nclusters: [orders]\noperation: scavenge\nstrategy: {0}\n"
      "gates: {{election_settle: 5s, move_settle: 5s}}\n",
      strategy);
  if (const auto applied = cluster.verger({"policy", "apply", policy.string()});
      applied.status != 0) {
    throw std::runtime_error(applied.err);
  }
  Client client(cluster);
  const auto run =
      ended_run(cluster, cluster.start_scavenge_run({"--policy", std::string(strategy)}));
  const auto meanwhile = client.end();
  std::string nodes;
  for (const auto& stage : run.at("stages")) {
    for (const auto& step : stage.at("steps")) {
      const auto kind = step.at("kind").get<std::string>();
      if (step.at("state") == "done" && (kind == "scavenge" || kind.ends_with("_scavenge"))) {
        nodes += fmt::format("{} {:.1f} s  ", step.at("node").get<std::string>(), seconds_of(step));
      }
    }
  }
  const auto all = fmt::format("{:.1f} s", seconds_of(run));
  std::cout << fmt::format(
                   "{:<8} run {:>8}, nodes {}\n"
                   "         writes p50 / p99 in ms: {} without, {} meanwhile\n"
                   "         reads  p50 / p99 in ms: {} without, {} meanwhile; {} calls failed\n",
                   strategy, all, nodes, percentiles(alone.writes), percentiles(meanwhile.writes),
                   percentiles(alone.reads), percentiles(meanwhile.reads), meanwhile.failed)
            << std::flush;
}

}  // namespace

void measure_strategies(const std::filesystem::path& files) {
  for (const auto* strategy : {"rolling", "online", "offline"}) {
    measure(strategy, files);
  }
}

}  // namespace verger::bench
