// Measures what a backup does to those who write, and shows that backups made under load are whole:
// over a cluster of real processes.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <iostream>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/bench/backup/slow_restores.h"
#include "tests/bench/workload.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/real_cluster.h"
#include "tests/support/processes/steady_writer.h"

namespace verger::bench {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using std::chrono::steady_clock;
using test::RealCluster;

constexpr std::string_view kUsage =
    "usage: verger-bench-backup writes [--events N] [--seconds N] [--writers N]\n"
    "                                  [--source leader|follower]\n"
    "       verger-bench-backup rounds [--rounds N] [--events N]\n"
    "       verger-bench-backup restores [--events N] [--rate KIB]... [--compressed]\n"
    "\n"
    "writes  How long writes take at a node, without a backup, during a throttled one of that\n"
    "        node, and without one again: three times --seconds (default: 60), by --writers\n"
    "        (default: 4) that each send one event after the other. The backup's rate is such "
    "that\n"
    "        it takes about --seconds. --events (default: 3 million) are there before, a\n"
    "        generated database of about 1 GB, four times under $TMPDIR or /tmp.\n"
    "rounds  --rounds times (default: 20): a backup while events are written, a restore of all\n"
    "        three nodes from it, their start; then each node has what was acknowledged before "
    "the\n"
    "        backup, and all digests are equal. Ends with 1 unless that is so each time. --events\n"
    "        (default: 100,000) are there before.\n"
    "restores  Restores from an S3-compatible server (npm) behind a line of so many KiB a second\n"
    "        (default: 1,024, then 65,536): with the backup's index, with one made from the log,\n"
    "        and as the restore chooses. --events (default: 600,000) of 16 bytes;\n"
    "        --compressed: with zstd. Ends with 1 where it chose clearly the slower one.\n";

constexpr std::uint64_t kStreams = 5'000;
constexpr auto kRunLimit = seconds(900);
constexpr auto kLife = seconds(4 * 3600);

struct Options {
  std::string what;
  std::uint64_t events = 0;
  std::uint64_t seconds = 60;
  std::uint64_t writers = 4;
  std::uint64_t rounds = 20;
  std::string source = "leader";
  SlowRestores restores;
};

double seconds_since(steady_clock::time_point begun) {
  return std::chrono::duration<double>(steady_clock::now() - begun).count();
}

void generate_for(const Options& options, const std::filesystem::path& files) {
  std::cout << fmt::format("generating {} events ...\n", options.events) << std::flush;
  const auto made = generate({.name = "backup",
                              .streams = kStreams,
                              .events_each = std::max<std::uint64_t>(options.events / kStreams, 1),
                              .max_count = 0,
                              .limited_percent = 0},
                             files);
  if (!made) {
    throw std::runtime_error(made.error().message);
  }
}

json ended_well(RealCluster& cluster, const std::string& id) {
  auto run = cluster.wait_for_run(id, kRunLimit);
  if (!run.is_object() || run.at("state") != "done") {
    throw std::runtime_error("a run is not done: " + run.dump(1) + cluster.logs());
  }
  return run;
}

// --- writes ---

/// Clients that each append one event after the other at a node, and note how long that takes.
class TimedWriters {
 public:
  TimedWriters(std::string url, std::uint64_t count) : url_(std::move(url)) {
    for (std::uint64_t i = 0; i < count; ++i) {
      threads_.emplace_back([this, i] { write(i); });
    }
  }
  ~TimedWriters() { stop(); }
  TimedWriters(const TimedWriters&) = delete;
  TimedWriters& operator=(const TimedWriters&) = delete;

  /// What was noted since the last call, in milliseconds, sorted. Writes that failed are not in it.
  std::vector<double> take() {
    const std::lock_guard lock(mutex_);
    auto out = std::exchange(taken_ms_, {});
    std::ranges::sort(out);
    return out;
  }
  [[nodiscard]] int failed() const { return failed_; }
  void stop() {
    stop_ = true;
    for (auto& thread : threads_) {
      if (thread.joinable()) {
        thread.join();
      }
    }
  }

 private:
  void write(std::uint64_t writer) {
    test::HttpsCaller caller({}, seconds(30));
    for (std::uint64_t number = 1; !stop_; ++number) {
      const auto begun = steady_clock::now();
      const auto answer = caller.ask(
          url_, {.method = "POST",
                 .target = fmt::format("/streams/measured-{}", writer),
                 .headers = {{"Content-Type", "application/json"},
                             {"ES-EventType", "written"},
                             {"ES-EventId",
                              fmt::format("00000000-0000-4000-8{:03x}-{:012x}", writer, number)}},
                 .body = fmt::format("{{\"n\":{}}}", number)});
      const auto took_ms = seconds_since(begun) * 1e3;
      if (!answer || answer->status != 201) {
        ++failed_;
        continue;
      }
      const std::lock_guard lock(mutex_);
      taken_ms_.push_back(took_ms);
    }
  }

  std::string url_;
  std::mutex mutex_;
  std::vector<double> taken_ms_;
  std::atomic<int> failed_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

double percentile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) {
    throw std::runtime_error("nothing was written");
  }
  const auto rank = std::ceil(part * static_cast<double>(sorted.size()));
  return sorted.at(static_cast<std::size_t>(std::max(rank, 1.0)) - 1);
}

void print_writes(std::string_view when, const std::vector<double>& times, double window) {
  std::cout << fmt::format(
                   "{:<16} {:>8} writes, {:>7.1f} a second; p50 {:>7.2f} ms, p99 {:>7.2f} ms, "
                   "longest {:>8.2f} ms\n",
                   when, times.size(), static_cast<double>(times.size()) / window,
                   percentile(times, 0.5), percentile(times, 0.99), times.back())
            << std::flush;
}

/// Asks the controller once a second until `done` of the answer. So often in each part of a
/// measurement, since the asking takes processor time from the nodes.
template <class Done>
void ask_until(RealCluster& cluster, const std::vector<std::string>& question, Done done) {
  const auto begun = steady_clock::now();
  while (!done(cluster.verger_json(question))) {
    if (steady_clock::now() - begun > kRunLimit) {
      throw std::runtime_error("the backup does not go on" + cluster.logs());
    }
    std::this_thread::sleep_for(seconds(1));
  }
}

/// The writes of a time without a backup.
std::vector<double> measure_alone(RealCluster& cluster, TimedWriters& writers,
                                  std::string_view when, seconds window) {
  static_cast<void>(writers.take());
  const auto begun = steady_clock::now();
  ask_until(cluster, {"run", "list", "orders"},
            [&](const json&) { return steady_clock::now() - begun >= window; });
  auto times = writers.take();
  print_writes(when, times, seconds_since(begun));
  return times;
}

/// State of the step that copies; empty: not yet there.
std::string state_of_copy(const json& run) {
  for (const auto& stage : run.is_object() ? run.at("stages") : json::array()) {
    for (const auto& step : stage.at("steps")) {
      if (step.at("kind") == "backup_create") {
        return step.at("state");
      }
    }
  }
  return {};
}

/// Name of the node that `source` means, "n2".
std::string node_of(RealCluster& cluster, const std::string& source) {
  const auto shown = cluster.verger_json({"cluster", "show", "orders"});
  const auto leader = shown.at("snapshot").at("leader").get<std::string>();
  if (source == "leader") {
    return leader;
  }
  return leader == "n1" ? "n2" : "n1";
}

std::uint64_t bytes_below(const std::filesystem::path& directory) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    bytes += entry.is_regular_file() ? entry.file_size() : 0;
  }
  return bytes;
}

int measure_writes(const Options& options, const std::filesystem::path& files) {
  generate_for(options, files);
  RealCluster cluster({.separate_agents = true,
                       .files = files,
                       .fast = false,
                       .role = "node",
                       .services = true,
                       .backups = true,
                       .life = kLife});
  cluster.start_all();
  cluster.register_cluster();
  const auto node = node_of(cluster, options.source);
  const auto index = static_cast<std::size_t>(node.at(1) - '1');
  const auto window = seconds(options.seconds);
  const auto bytes = bytes_below(files);
  const auto rate = std::max<std::uint64_t>(bytes / options.seconds, 1);
  std::cout << fmt::format("{} writers at {}, a {}; its database has {:.0f} MiB\n", options.writers,
                           node, options.source, static_cast<double>(bytes) / (1U << 20U))
            << std::flush;
  TimedWriters writers(cluster.node_url(index), options.writers);
  const auto before = measure_alone(cluster, writers, "before", window);
  const auto id = cluster.start_run(
      "backup", {"--repository", "main", "--nodes", node, "--source", options.source, "--verify",
                 "false", "--bytes-per-second", std::to_string(rate)});
  const std::vector<std::string> question{"run", "show", id};
  // Not only "acting": a copy that is over within a second is told from one that never begins.
  ask_until(cluster, question, [](const json& run) {
    const auto state = state_of_copy(run);
    return state == "acting" || state == "done";
  });
  static_cast<void>(writers.take());
  const auto begun = steady_clock::now();
  ask_until(cluster, question,
            [](const json& run) { return run.is_object() && state_of_copy(run) != "acting"; });
  const auto lasted = seconds_since(begun);
  const auto during = writers.take();
  print_writes("during a backup", during, lasted);
  ended_well(cluster, id);
  const auto after = measure_alone(cluster, writers, "after", window);
  writers.stop();
  auto without = before;
  without.insert(without.end(), after.begin(), after.end());
  std::ranges::sort(without);
  std::cout << fmt::format(
      "the backup: {:.1f} s at {:.1f} MiB/s; p99 with it {:.2f} ms, without {:.2f} ms: x {:.2f}; "
      "p50 x {:.2f}; {} writes failed\n",
      lasted, static_cast<double>(rate) / (1U << 20U), percentile(during, 0.99),
      percentile(without, 0.99), percentile(during, 0.99) / percentile(without, 0.99),
      percentile(during, 0.5) / percentile(without, 0.5), writers.failed());
  return 0;
}

// --- rounds ---

using Digests = std::array<json, RealCluster::kNodes>;

/// Of the files of all nodes, once they are equal, or after a while as they are.
Digests digests_of(const RealCluster& cluster) {
  Digests out;
  test::eventually(seconds(60), [&] {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto printed = test::run(
          {test::program("verger-db"), "digest", cluster.node_directory(i).string(), "-o", "json"});
      auto digest = json::parse(printed.out, nullptr, false);
      out.at(i) = digest.is_object() ? json{{"end", digest["end"]},
                                            {"logical", digest["logical"]},
                                            {"readable", digest["readable"]}}
                                     : json();
    }
    return out[0].is_object() && out[0] == out[1] && out[0] == out[2];
  });
  return out;
}

/// How many of the writer's events each node has, once all have as many and `least`.
std::array<int, RealCluster::kNodes> events_of(const RealCluster& cluster, int least) {
  test::HttpsCaller caller;
  std::array<int, RealCluster::kNodes> seen{};
  test::eventually(seconds(60), [&] {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      seen.at(i) = test::written_steadily_at(caller, cluster.node_url(i));
    }
    return seen[0] >= least && seen[1] == seen[0] && seen[2] == seen[0];
  });
  return seen;
}

/// The id of the newest backup.
std::string newest_backup(const RealCluster& cluster) {
  const auto listed = cluster.verger({"backup", "list", "orders", "-o", "json"});
  std::istringstream lines(listed.out);
  std::string first;
  std::getline(lines, first);
  return json::parse(first).at("id").get<std::string>();
}

/// Whether everything that was acknowledged before the backup is on all restored nodes, and their
/// logs are equal.
bool one_round(RealCluster& cluster, std::uint64_t round) {
  constexpr int kBefore = 50;
  constexpr int kDuring = 20;
  const auto there = events_of(cluster, 0)[0];
  test::SteadyWriter writer(cluster, {});  // those that are there already are accepted again
  const auto written = [&](int more) {
    if (!writer.wait_for(more)) {
      throw std::runtime_error("writes fail" + cluster.logs());
    }
  };
  while (writer.written() < there + kBefore) {
    written(1);
  }
  const auto acknowledged = writer.written();
  auto begun = steady_clock::now();
  // Just after a restore the agents have not looked at the files again yet.
  test::Finished made;
  if (!test::eventually(seconds(120), [&] {
        made = cluster.verger(
            {"backup", "create", "orders", "--repository", "main", "--yes", "--wait"});
        return made.status == 0;
      })) {
    throw std::runtime_error("backup: " + made.out + made.err + cluster.logs());
  }
  const auto backup_took = seconds_since(begun);
  written(kDuring);
  writer.stop();
  const auto id = newest_backup(cluster);
  begun = steady_clock::now();
  ended_well(cluster, cluster.start_run("restore", {"--repository", "main", "--scope", "cluster",
                                                    "--generation", id, "--keep-old", "false"}));
  const auto restore_took = seconds_since(begun);
  if (const auto problem = cluster.wait_until_settled(); !problem.empty()) {
    throw std::runtime_error(problem);
  }
  const auto events = events_of(cluster, acknowledged);
  const auto digests = digests_of(cluster);
  const bool equal = digests[0].is_object() && digests[0] == digests[1] && digests[0] == digests[2];
  const bool whole = std::ranges::all_of(
      events, [&](int seen) { return seen >= acknowledged && seen == events[0]; });
  std::cout << fmt::format(
                   "{:>3}  {}  {} acknowledged before it, {} in the end; restored {}, {}, {}; "
                   "digests {}; backup {:.1f} s, restore {:.1f} s{}\n",
                   round, id, acknowledged, writer.written(), events[0], events[1], events[2],
                   equal ? "equal" : "NOT EQUAL", backup_took, restore_took,
                   whole ? "" : "; NOT WHOLE")
            << std::flush;
  return equal && whole;
}

int measure_rounds(const Options& options, const std::filesystem::path& files) {
  generate_for(options, files);
  RealCluster cluster({.separate_agents = true,
                       .files = files,
                       .role = "node",
                       .services = true,
                       .backups = true,
                       .life = kLife});
  cluster.start_all();
  cluster.register_cluster();
  std::uint64_t good = 0;
  for (std::uint64_t round = 1; round <= options.rounds; ++round) {
    good += one_round(cluster, round) ? 1 : 0;
  }
  std::cout << fmt::format(
      "{} of {} backups under load: restored on three nodes, whole, digests equal\n", good,
      options.rounds);
  return good == options.rounds ? 0 : 1;
}

// --- command line ---

bool take_number(std::string_view text, std::uint64_t& into) {
  const auto [end, error] = std::from_chars(text.begin(), text.end(), into);
  return error == std::errc() && end == text.end() && into > 0;
}

std::optional<Options> parse(std::span<char*> arguments) {
  constexpr std::uint64_t kMuch = 3'000'000;
  constexpr std::uint64_t kLittle = 100'000;
  constexpr std::uint64_t kSmallOnes = 600'000;
  Options options;
  options.what = arguments.size() > 1 ? arguments[1] : "";
  const bool is_restores = options.what == "restores";
  if (options.what != "writes" && options.what != "rounds" && !is_restores) {
    return std::nullopt;
  }
  options.events = options.what == "writes" ? kMuch : is_restores ? kSmallOnes : kLittle;
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--compressed") {
      options.restores.compressed = true;
      continue;
    }
    if (++i == arguments.size()) {
      return std::nullopt;
    }
    const std::string_view value = arguments[i];
    std::uint64_t rate = 0;
    auto* number = name == "--events"    ? &options.events
                   : name == "--seconds" ? &options.seconds
                   : name == "--writers" ? &options.writers
                   : name == "--rounds"  ? &options.rounds
                   : name == "--rate"    ? &rate
                                         : nullptr;
    const bool is_source = name == "--source" && (value == "leader" || value == "follower");
    if (is_source) {
      options.source = value;
    } else if (number == nullptr || !take_number(value, *number)) {
      return std::nullopt;
    }
    if (number == &rate) {
      options.restores.rates.push_back(rate);
    }
  }
  options.restores.events = options.events;
  if (options.restores.rates.empty()) {
    options.restores.rates = {1'024, 65'536};
  }
  return options;
}

int run(std::span<char*> arguments) {
  const auto options = parse(arguments);
  if (!options) {
    std::cerr << kUsage;
    return 64;
  }
  const test::TempDirectory directory;
  if (options->what == "restores") {
    return measure_slow_restores(options->restores, directory.path());
  }
  const auto files = directory.path() / "generated";
  return options->what == "writes" ? measure_writes(*options, files)
                                   : measure_rounds(*options, files);
}

}  // namespace
}  // namespace verger::bench

int main(int argc, char** argv) {
  try {
    return verger::bench::run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::cerr << "verger-bench-backup: " << error.what() << '\n';
    return 1;
  }
}
