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

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "tests/support/processes/real_cluster.h"
#include "tests/support/temp_directory.h"

namespace verger::bench {
namespace {

namespace net = boost::asio;
using std::chrono::seconds;
using std::chrono::steady_clock;
using test::RealCluster;

constexpr std::string_view kUsage =
    "usage: verger-bench-node [writes|reads] [--seconds N] [--connections N] [--size BYTES]\n"
    "\n"
    "Starts three embedded nodes on empty databases under $TMPDIR or /tmp.\n"
    "writes  Each of --connections (default: 64, and 1 beside it) appends one event of --size\n"
    "        bytes (default: 200) after the other to a stream of its own at the leader, for\n"
    "        --seconds (default: 10). Yardstick: the same bytes written and synced to two files,\n"
    "        one append after the other, right before.\n"
    "reads   Each connection reads events of one stream at the leader, one after the other.\n"
    "Without a word: both.\n";

struct Options {
  std::string what;
  std::uint64_t seconds = 10;
  std::uint64_t connections = 64;
  std::uint64_t size = 200;
};

double seconds_since(steady_clock::time_point begun) {
  return std::chrono::duration<double>(steady_clock::now() - begun).count();
}

/// What the connections of one measurement have in common. One thread.
struct Load {
  std::uint16_t port = 0;
  int expected_status = 200;
  steady_clock::time_point until{};
  std::vector<double> times_ms{};
  std::uint64_t failed = 0;
  std::string first_failure{};
};

using Head = std::function<std::string(std::uint64_t number)>;

/// Sends the answer's head and body to nothing; its status. 0: the connection is over.
net::awaitable<int> receive(net::ip::tcp::socket& socket, std::string& buffer) {
  const auto token = net::as_tuple(net::use_awaitable);
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    char piece[4096];
    const auto [error, size] = co_await socket.async_read_some(net::buffer(piece), token);
    if (error) {
      co_return 0;
    }
    buffer.append(piece, size);
  }
  int status = 0;
  std::from_chars(buffer.data() + 9, buffer.data() + 12, status);
  std::size_t length = 0;
  if (const auto at = buffer.find("Content-Length: "); at < end) {
    std::from_chars(buffer.data() + at + 16, buffer.data() + end, length);
  }
  const auto whole = end + 4 + length;
  while (buffer.size() < whole) {
    char piece[16384];
    const auto [error, size] = co_await socket.async_read_some(net::buffer(piece), token);
    if (error) {
      co_return 0;
    }
    buffer.append(piece, size);
  }
  buffer.erase(0, whole);
  co_return status;
}

/// One request after the other on one connection.
net::awaitable<void> keep_busy(std::shared_ptr<Load> load, Head request) {
  net::ip::tcp::socket socket(co_await net::this_coro::executor);
  const auto token = net::as_tuple(net::use_awaitable);
  const auto [refused] =
      co_await socket.async_connect({net::ip::address_v4::loopback(), load->port}, token);
  if (refused) {
    throw std::runtime_error("cannot connect: " + refused.message());
  }
  socket.set_option(net::ip::tcp::no_delay(true));
  std::string buffer;
  for (std::uint64_t number = 0; steady_clock::now() < load->until; ++number) {
    const auto text = request(number);
    const auto begun = steady_clock::now();
    const auto [error, sent] = co_await net::async_write(socket, net::buffer(text), token);
    const auto status = error ? 0 : co_await receive(socket, buffer);
    if (status != load->expected_status) {
      ++load->failed;
      load->first_failure = fmt::format("status {}", status);
      if (status == 0) {
        co_return;
      }
      continue;
    }
    load->times_ms.push_back(seconds_since(begun) * 1e3);
  }
}

double percentile(std::span<const double> sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

/// Its rate per second.
double measure(const Options& options, std::string_view what, std::uint16_t port, int status,
               std::uint64_t connections, const std::function<Head(std::uint64_t)>& requests_of) {
  auto load = std::make_shared<Load>(Load{.port = port, .expected_status = status});
  net::io_context context;
  for (std::uint64_t i = 0; i < connections; ++i) {
    net::co_spawn(context, keep_busy(load, requests_of(i)), [](std::exception_ptr failure) {
      if (failure) {
        std::rethrow_exception(failure);
      }
    });
  }
  const auto begun = steady_clock::now();
  load->until = begun + seconds(options.seconds);
  context.run();
  const auto elapsed = seconds_since(begun);
  if (load->times_ms.empty()) {
    throw std::runtime_error(
        fmt::format("{}: nothing was answered; {}", what, load->first_failure));
  }
  std::ranges::sort(load->times_ms);
  const auto rate = static_cast<double>(load->times_ms.size()) / elapsed;
  std::cout << fmt::format(
                   "{:<24} {:>9.0f} a second, {:>3} connections; p50 {:.2f} ms, p99 {:.2f} ms, "
                   "longest {:.1f} ms; {} failed\n",
                   what, rate, connections, percentile(load->times_ms, 0.5),
                   percentile(load->times_ms, 0.99), load->times_ms.back(), load->failed)
            << std::flush;
  return rate;
}

Head append_request(std::uint64_t connection, std::uint64_t round, std::uint64_t size) {
  const auto data = fmt::format("{{\"text\":\"{}\"}}", std::string(size > 11 ? size - 11 : 1, 'x'));
  return [=](std::uint64_t number) {
    return fmt::format(
        "POST /streams/bench-{} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "ES-EventType: written\r\nES-EventId: 00000000-0000-4{:03x}-8{:03x}-{:012x}\r\n"
        "Content-Length: {}\r\n\r\n{}",
        connection, round, connection, number + 1, data.size(), data);
  };
}

/// Port of the leader's node interface.
std::uint16_t leader_of(RealCluster& cluster) {
  const auto shown = cluster.verger_json({"cluster", "show", "orders"});
  const auto leader = shown.at("snapshot").at("leader").get<std::string>();
  return cluster.node_port(static_cast<std::size_t>(leader.at(1) - '1'));
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
  const auto port = leader_of(cluster);
  std::uint64_t round = 0;
  for (const auto connections : {std::uint64_t{1}, options.connections}) {
    ++round;
    measure(options, "appends", port, 201, connections,
            [&](std::uint64_t i) { return append_request(i, round, options.size); });
  }
}

void measure_reads(const Options& options, RealCluster& cluster) {
  constexpr std::uint64_t kEvents = 1000;
  const auto port = leader_of(cluster);
  Options briefly = options;
  briefly.seconds = 2;
  measure(briefly, "(appends to read)", port, 201, 8,
          [&](std::uint64_t i) { return append_request(0, 100 + i, options.size); });
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
    if (i == 1 && (word == "writes" || word == "reads")) {
      options.what = word;
      continue;
    }
    std::uint64_t* value = word == "--seconds"       ? &options.seconds
                           : word == "--connections" ? &options.connections
                           : word == "--size"        ? &options.size
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
  const auto options = parse(arguments);
  if (!options) {
    std::cerr << kUsage;
    return 64;
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
