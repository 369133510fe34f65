// Measures three embedded nodes as real processes on loopback, with their own intervals and limits:
// how many appends and reads they take from many connections, and how long each takes.
#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "tests/bench/node/leader_of.h"
#include "tests/bench/node/load.h"
#include "tests/bench/node/scavenge_writes.h"
#include "tests/support/processes/real_cluster.h"
#include "tests/support/temp_directory.h"

namespace verger::bench {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using test::RealCluster;

constexpr std::string_view kUsage =
    "usage: verger-bench-node [writes|reads|scavenges] [--seconds N] [--connections N]\n"
    "                         [--size BYTES] [--events N]\n"
    "\n"
    "Starts three embedded nodes on empty databases under $TMPDIR or /tmp.\n"
    "writes  Each of --connections (default: 64, and 1 beside it) appends one event of --size\n"
    "        bytes (default: 200) after the other to a stream of its own at the leader, for\n"
    "        --seconds (default: 10). Yardstick: the same bytes written and synced to two files,\n"
    "        one append after the other, right before.\n"
    "reads   Each connection reads events of one stream at the leader, one after the other.\n"
    "scavenges  How long appends of --connections (default: 4) take at the leader without a\n"
    "        scavenge, for --seconds, during one of it with throttle 100, 50 and 10 %, and "
    "without\n"
    "        one again; each on new nodes with the same --events (default: 3 million).\n"
    "Without a word: writes and reads.\n";

struct Options {
  std::string what;
  std::uint64_t seconds = 10;
  std::uint64_t connections = 0;  ///< 0: the default
  std::uint64_t size = 200;
  std::uint64_t events = 3'000'000;
};

constexpr std::uint64_t kManyConnections = 64;

/// Its rate per second.
double measure(const Options& options, std::string_view what, std::uint16_t port, int status,
               std::uint64_t connections,
               const std::function<Requests(std::uint64_t)>& requests_of) {
  auto load = std::make_shared<Load>(Load{.port = port, .expected_status = status});
  net::io_context context;
  for (std::uint64_t i = 0; i < connections; ++i) {
    net::co_spawn(context, keep_busy(load, requests_of(i)), rethrow);
  }
  const auto begun = steady_clock::now();
  load->until = begun + seconds(options.seconds);
  context.run();
  const auto elapsed = seconds_since(begun);
  return print_times(what, connections, elapsed, *load);
}

/// Time of one append's two syncs where nothing else is done, and so what a single writer cannot
/// get below: leader and follower each sync a chunk file and writer.chk.
void measure_syncs(const std::filesystem::path& directory, std::uint64_t size) {
  constexpr int kCount = 200;
  const auto path = (directory / "sync-yardstick").string();
  const auto marker = path + ".chk";
  const int file = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  const int checkpoint = ::open(marker.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 || checkpoint < 0 || ::ftruncate(file, 1 << 20) != 0) {
    throw std::runtime_error("cannot write in " + directory.string());
  }
  const std::string data(size, 'x');
  std::vector<double> times;
  for (int i = 0; i < kCount; ++i) {
    const auto begun = steady_clock::now();
    const bool written =
        ::pwrite(file, data.data(), data.size(), static_cast<off_t>(i) * 256) > 0 &&
        ::fdatasync(file) == 0 && ::pwrite(checkpoint, &i, sizeof(i), 0) > 0 &&
        ::fdatasync(checkpoint) == 0;
    if (!written) {
      throw std::runtime_error("cannot sync in " + directory.string());
    }
    times.push_back(seconds_since(begun) * 1e3);
  }
  ::close(file);
  ::close(checkpoint);
  std::filesystem::remove(path);
  std::filesystem::remove(marker);
  std::ranges::sort(times);
  std::cout << fmt::format("yardstick: two syncs        p50 {:.2f} ms, p99 {:.2f} ms\n",
                           percentile(times, 0.5), percentile(times, 0.99))
            << std::flush;
}

void measure_writes(const Options& options, RealCluster& cluster) {
  measure_syncs(cluster.node_directory(0), options.size);
  const auto port = cluster.node_port(leader_of(cluster));
  std::uint64_t round = 0;
  for (const auto connections : {std::uint64_t{1}, options.connections}) {
    ++round;
    measure(options, "appends", port, 201, connections,
            [&](std::uint64_t i) { return appends(i, round, options.size); });
  }
}

void measure_reads(const Options& options, RealCluster& cluster) {
  constexpr std::uint64_t kEvents = 1000;
  const auto port = cluster.node_port(leader_of(cluster));
  Options briefly = options;
  briefly.seconds = 2;
  measure(briefly, "(appends to read)", port, 201, 8,
          [&](std::uint64_t i) { return appends(0, 100 + i, options.size); });
  measure(options, "reads of one event", port, 200, options.connections, [](std::uint64_t i) {
    return [i](std::uint64_t number) {
      return fmt::format(
          "GET /streams/bench-0/{} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n",
          (number * 7 + i) % kEvents);
    };
  });
}

std::optional<Options> parse(std::span<char* const> arguments) {
  Options options;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (i == 1 && (word == "writes" || word == "reads" || word == "scavenges")) {
      options.what = word;
      continue;
    }
    std::uint64_t* value = word == "--seconds"       ? &options.seconds
                           : word == "--connections" ? &options.connections
                           : word == "--size"        ? &options.size
                           : word == "--events"      ? &options.events
                                                     : nullptr;
    if (value == nullptr || ++i == arguments.size()) {
      return std::nullopt;
    }
    const std::string_view number = arguments[i];
    const auto read = std::from_chars(number.data(), number.data() + number.size(), *value);
    if (read.ec != std::errc() || read.ptr != number.data() + number.size() || *value == 0) {
      return std::nullopt;
    }
  }
  return options;
}

int run(std::span<char* const> arguments) {
  auto options = parse(arguments);
  if (!options) {
    std::cerr << kUsage;
    return 64;
  }
  if (options->what == "scavenges") {
    ScavengeWrites scavenges{
        .window_seconds = options->seconds, .size = options->size, .events = options->events};
    if (options->connections > 0) {
      scavenges.connections = options->connections;
    }
    scavenges.measure();
    return 0;
  }
  if (options->connections == 0) {
    options->connections = kManyConnections;
  }
  const test::TempDirectory empty;
  RealCluster cluster({.files = empty.path(),
                       .fast = false,
                       .with_agents = false,
                       .role = "node",
                       .life = seconds(900)});
  cluster.start_all();
  cluster.register_cluster();
  if (options->what != "reads") {
    measure_writes(*options, cluster);
  }
  if (options->what != "writes") {
    measure_reads(*options, cluster);
  }
  return 0;
}

}  // namespace
}  // namespace verger::bench

int main(int argc, char** argv) {
  try {
    return verger::bench::run(std::span<char* const>(argv, static_cast<std::size_t>(argc)));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
