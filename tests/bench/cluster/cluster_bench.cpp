// Measures the controller over a cluster of real processes with their own intervals and limits:
// what a rolling scavenge takes beside the scavenges in it, and how soon a pause holds.
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iostream>
#include <span>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "tests/bench/cluster/ended_run.h"
#include "tests/bench/cluster/strategies_bench.h"
#include "tests/bench/workload.h"
#include "tests/support/processes/https_caller.h"

namespace verger::bench {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using test::RealCluster;

constexpr std::string_view kUsage =
    "usage: verger-bench-cluster [--events N] [--pauses N] [--strategies 1]\n"
    "\n"
    "Generates a database (default: 6 million events), gives three embedded nodes a copy each\n"
    "and measures a rolling scavenge, and in another one pauses (default: 10). With --strategies "
    "1\n"
    "instead: the same database scavenged by the servers, online and offline, with what a client\n"
    "waits for meanwhile. Under $TMPDIR or /tmp, where it needs 2 GB for each million events.\n";

constexpr std::uint64_t kStreams = 25'000;

struct Options {
  std::uint64_t events = 6'000'000;
  std::uint64_t pauses = 10;
  std::uint64_t strategies = 0;  ///< 1: these instead
};

double ms_between(steady_clock::time_point from, steady_clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

json asked(test::HttpsCaller& caller, const std::string& url, const std::string& target) {
  const auto answer = caller.ask(
      url, {.method = "GET", .target = target, .headers = {{"Accept", "application/json"}}});
  if (!answer || answer->status != 200) {
    throw std::runtime_error(fmt::format(
        "{}{}: {}", url, target, answer ? std::to_string(answer->status) : answer.error().message));
  }
  return json::parse(answer->body);
}

std::string url_of(const RealCluster& cluster, const json& step) {
  return cluster.node_url(step.at("node").get<std::string>() == "n1"   ? 0
                          : step.at("node").get<std::string>() == "n2" ? 1
                                                                       : 2);
}

/// How long the node says that its scavenge took: "timeTaken" of the event that ends it.
double scavenge_seconds(test::HttpsCaller& caller, const std::string& url, const std::string& id) {
  const auto page =
      asked(caller, url, "/streams/$scavenges-" + id + "/head/backward/20?embed=body");
  for (const auto& entry : page.at("entries")) {
    if (entry.at("eventType") == "$scavengeCompleted") {
      const auto text = json::parse(entry.at("data").get<std::string>())
                            .at("timeTaken")
                            .get<std::string>();  // "00:00:04.1234567"
      return std::stod(text.substr(0, 2)) * 3'600 + std::stod(text.substr(3, 2)) * 60 +
             std::stod(text.substr(6));
    }
  }
  throw std::runtime_error("no end of scavenge " + id + " at " + url);
}

void start(RealCluster& cluster) {
  cluster.start_all();
  cluster.register_cluster();
}

/// Makespan over the sum of its parts: scavenges as the nodes time them, other steps as the
/// controller does, and the time an election has to settle before the leader may resign.
void measure_rolling(const std::filesystem::path& files) {
  RealCluster cluster({.files = files, .fast = false, .life = kRunLimit});
  start(cluster);
  const auto run = ended_run(cluster, cluster.start_scavenge_run());
  test::HttpsCaller caller;
  double scavenges = 0;
  double others = 0;
  for (const auto& stage : run.at("stages")) {
    for (const auto& step : stage.at("steps")) {
      if (step.at("state") != "done") {
        continue;
      }
      if (step.at("kind") == "scavenge") {
        scavenges += scavenge_seconds(caller, url_of(cluster, step),
                                      step.at("result").at("scavenge_id").get<std::string>());
      } else {
        others += seconds_of(step);
      }
    }
  }
  const auto makespan = seconds_of(run);
  std::cout << fmt::format(
      "rolling scavenge: {:.1f} s, x {:.3f} its parts ({:.1f} s: three scavenges {:.1f} s, other "
      "steps {:.1f} s); {:.1f} s beside them\n",
      makespan, makespan / (scavenges + others), scavenges + others, scavenges, others,
      makespan - scavenges - others);
}

/// URL of the node where a step of the run scavenges, once the node says so; empty: the run ended.
std::string scavenging_node(RealCluster& cluster, test::HttpsCaller& caller,
                            const std::string& id) {
  std::string url;
  test::eventually(kRunLimit, [&] {
    const auto run = cluster.verger_json({"run", "show", id});
    if (run.is_object() && run.at("state") == "done") {
      return true;
    }
    for (const auto& stage : run.at("stages")) {
      for (const auto& step : stage.at("steps")) {
        if (step.at("kind") == "scavenge" && step.at("state") == "acting") {
          url = url_of(cluster, step);
        }
      }
    }
    if (!url.empty() &&
        asked(caller, url, "/admin/scavenge/current").value("scavengeId", "").empty()) {
      url.clear();
    }
    return !url.empty();
  });
  return url;
}

std::string of_all(std::vector<double> times) {
  std::ranges::sort(times);
  return times.empty() ? std::string("none")
                       : fmt::format("median {:.0f} ms, longest {:.0f} ms", times[times.size() / 2],
                                     times.back());
}

void measure_pauses(const std::filesystem::path& files, std::uint64_t pauses) {
  RealCluster cluster({.files = files, .fast = false, .life = kRunLimit});
  start(cluster);
  test::HttpsCaller caller;
  const auto id = cluster.start_scavenge_run();
  std::vector<double> acknowledged;
  std::vector<double> stopped;
  std::vector<double> seen;
  while (stopped.size() < pauses) {
    const auto url = scavenging_node(cluster, caller, id);
    if (url.empty()) {
      break;  // the run has ended
    }
    const auto begin = steady_clock::now();
    const auto paused = cluster.verger({"run", "pause", id, "--now"});
    if (paused.status != 0) {
      break;
    }
    acknowledged.push_back(ms_between(begin, steady_clock::now()));
    const auto wait_for = [&](auto condition) {
      if (!test::eventually(seconds(60), condition)) {
        throw std::runtime_error("the run does not pause" + cluster.logs());
      }
      return ms_between(begin, steady_clock::now());
    };
    stopped.push_back(wait_for([&] {
      return asked(caller, url, "/admin/scavenge/current").value("scavengeId", "").empty();
    }));
    seen.push_back(wait_for([&] {
      const auto run = cluster.verger_json({"run", "show", id});
      return run.is_object() && run.at("state") == "paused";
    }));
    if (const auto resumed = cluster.verger({"run", "resume", id}); resumed.status != 0) {
      throw std::runtime_error("resume: " + resumed.err);
    }
  }
  const auto run = ended_run(cluster, id);
  std::cout << fmt::format(
      "{} pauses, from the command's start:\n"
      "  acknowledged, no new step from then on: {}\n"
      "  the node's scavenge stopped:            {}\n"
      "  seen as stopped, the run paused:        {}\n"
      "the run then ended {}, digests {}\n",
      stopped.size(), of_all(acknowledged), of_all(stopped), of_all(seen),
      run.at("state").get<std::string>(),
      run.at("report").at("digests_equal") == true ? "equal" : "not equal");
}

std::optional<Options> parse(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 1; i < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    auto* into = name == "--events"       ? &options.events
                 : name == "--pauses"     ? &options.pauses
                 : name == "--strategies" ? &options.strategies
                                          : nullptr;
    if (into == nullptr || i + 1 == arguments.size()) {
      return std::nullopt;
    }
    const std::string_view value = arguments[i + 1];
    const auto [end, error] = std::from_chars(value.begin(), value.end(), *into);
    if (error != std::errc() || end != value.end()) {
      return std::nullopt;
    }
  }
  return options.events < kStreams ? std::nullopt : std::optional(options);
}

int run(std::span<char*> arguments) {
  const auto options = parse(arguments);
  if (!options) {
    std::cerr << kUsage;
    return 64;
  }
  const test::TempDirectory directory;
  const auto files = directory.path() / "generated";
  std::cout << fmt::format("generating {} events ...\n", options->events) << std::flush;
  const auto each = options->events / kStreams;
  const auto made = generate({.name = "cluster",
                              .streams = kStreams,
                              .events_each = each,
                              .max_count = static_cast<std::int64_t>(each / 6 + 1)},
                             files);
  if (!made) {
    std::cerr << made.error().message << '\n';
    return 1;
  }
  if (options->strategies > 0) {
    measure_strategies(files);
    return 0;
  }
  measure_rolling(files);
  if (options->pauses > 0) {
    measure_pauses(files, options->pauses);
  }
  return 0;
}

}  // namespace
}  // namespace verger::bench

int main(int argc, char** argv) {
  try {
    return verger::bench::run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::cerr << "verger-bench-cluster: " << error.what() << '\n';
    return 1;
  }
}
