#include "tests/bench/node/scavenge_writes.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <optional>
#include <stdexcept>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include "tests/bench/node/leader_of.h"
#include "tests/bench/node/load.h"
#include "tests/bench/workload.h"
#include "tests/support/processes/real_cluster.h"
#include "tests/support/temp_directory.h"

namespace verger::bench {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using std::chrono::steady_clock;
using test::RealCluster;

constexpr std::uint64_t kStreams = 5'000;
constexpr auto kLimit = seconds(900);

std::string request(std::string_view method, std::string_view target) {
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\nContent-Length: 0\r\n\r\n",
      method, target);
}

/// Starts a scavenge, and ends the load once it has ended.
net::awaitable<void> scavenge(std::shared_ptr<Load> load, int throttle) {
  auto socket = co_await connected_to(load->port);
  std::string buffer;
  const auto started = co_await ask(
      socket, buffer, request("POST", fmt::format("/admin/scavenge?throttlePercent={}", throttle)));
  if (started.status != 200) {
    throw std::runtime_error(
        fmt::format("the scavenge was not started: {} {}", started.status, started.body));
  }
  const auto id = json::parse(started.body).at("scavengeId").get<std::string>();
  net::steady_timer timer(co_await net::this_coro::executor);
  // Often enough for a scavenge of some seconds, and no load for the node.
  constexpr std::chrono::milliseconds kBetween{50};
  for (auto current = id; current == id;) {
    if (steady_clock::now() >= load->until) {
      throw std::runtime_error("the scavenge does not end");
    }
    timer.expires_after(kBetween);
    co_await timer.async_wait(net::use_awaitable);
    const auto seen = co_await ask(socket, buffer, request("GET", "/admin/scavenge/current"));
    current = json::parse(seen.body).at("scavengeId").get<std::string>();
  }
  load->until = steady_clock::now();
}

std::uint64_t bytes_of_chunks(const std::filesystem::path& database) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(database)) {
    const bool chunk = entry.path().filename().string().starts_with("chunk-");
    bytes += chunk ? entry.file_size() : 0;
  }
  return bytes;
}

struct Measured {
  double p99 = 0;
  double seconds = 0;
};

/// `throttle`: nullopt: without a scavenge, for the window.
Measured measure_appends(const ScavengeWrites& options, std::uint16_t port, std::uint64_t round,
                         std::optional<int> throttle) {
  auto load = std::make_shared<Load>(Load{.port = port, .expected_status = 201});
  net::io_context context;
  for (std::uint64_t i = 0; i < options.connections; ++i) {
    net::co_spawn(context, keep_busy(load, appends(i, round, options.size)), rethrow);
  }
  const auto begun = steady_clock::now();
  load->until = begun + (throttle ? kLimit : seconds(options.window_seconds));
  if (throttle) {
    net::co_spawn(context, scavenge(load, *throttle), rethrow);
  }
  context.run();
  const auto lasted = seconds_since(begun);
  print_times(throttle ? fmt::format("during, throttle {:>3} %", *throttle) : "without",
              options.connections, lasted, *load);
  return {.p99 = percentile(load->times_ms, 0.99), .seconds = lasted};
}

}  // namespace

void ScavengeWrites::measure() const {
  const test::TempDirectory directory;
  const auto files = directory.path() / "database";
  const auto made = generate({.name = "scavenge",
                              .streams = kStreams,
                              .events_each = std::max<std::uint64_t>(events / kStreams, 1),
                              .max_count = static_cast<std::int64_t>(events / kStreams / 6),
                              .limited_percent = 60},
                             files);
  if (!made) {
    throw std::runtime_error(made.error().message);
  }
  for (const auto throttle : throttles) {
    RealCluster cluster({.files = files,
                         .fast = false,
                         .with_agents = false,
                         .role = "node",
                         .life = kLimit + seconds(300)});
    cluster.start_all();
    cluster.register_cluster();
    const auto leader = leader_of(cluster);
    const auto port = cluster.node_port(leader);
    const auto before = measure_appends(*this, port, 1, std::nullopt);
    const auto bytes_before = bytes_of_chunks(cluster.node_directory(leader));
    const auto during = measure_appends(*this, port, 2, throttle);
    const auto bytes_after = bytes_of_chunks(cluster.node_directory(leader));
    if (bytes_after > bytes_before * 3 / 4) {
      throw std::runtime_error("the scavenge left its work undone");
    }
    const auto after = measure_appends(*this, port, 3, std::nullopt);
    std::cout
        << fmt::format(
               "the scavenge took {:.1f} s, chunks {} -> {} MiB; p99 {:.2f} ms, without {:.2f} "
               "and {:.2f} ms: x {:.1f}\n",
               during.seconds, bytes_before >> 20U, bytes_after >> 20U, during.p99, before.p99,
               after.p99, during.p99 / before.p99)
        << std::flush;
  }
}

}  // namespace verger::bench
