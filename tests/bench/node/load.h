#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace verger::bench {

namespace net = boost::asio;

/// What the connections of one measurement have in common. One thread.
struct Load {
  std::uint16_t port = 0;
  int expected_status = 200;
  std::chrono::steady_clock::time_point until{};  ///< may be moved meanwhile
  std::vector<double> times_ms{};
  std::uint64_t failed = 0;
  std::string first_failure{};
};

/// The request with a number, from 0 on.
using Requests = std::function<std::string(std::uint64_t number)>;

struct HttpAnswer {
  int status = 0;  ///< 0: the connection is over
  std::string body{};
};

/// Connected to a port of 127.0.0.1. Throws where it cannot be.
net::awaitable<net::ip::tcp::socket> connected_to(std::uint16_t port);
/// One exchange. `buffer` is the connection's own.
net::awaitable<HttpAnswer> ask(net::ip::tcp::socket& socket, std::string& buffer,
                               const std::string& request);
/// For co_spawn(): what fails ends the measurement.
void rethrow(std::exception_ptr failure);
/// One request after the other on one connection.
net::awaitable<void> keep_busy(std::shared_ptr<Load> load, Requests requests);

/// Appends to a stream of the connection's own; of another round, other events.
Requests appends(std::uint64_t connection, std::uint64_t round, std::uint64_t size);

double seconds_since(std::chrono::steady_clock::time_point begun);
double percentile(std::span<const double> sorted, double share);
/// Sorts the times. Their rate per second; throws where nothing was answered.
double print_times(std::string_view what, std::uint64_t connections, double seconds, Load& load);

}  // namespace verger::bench
