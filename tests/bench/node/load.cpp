#include "tests/bench/node/load.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iostream>
#include <stdexcept>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace verger::bench {
namespace {

using std::chrono::steady_clock;

constexpr auto kToken = net::as_tuple(net::use_awaitable);

net::awaitable<HttpAnswer> receive(net::ip::tcp::socket& socket, std::string& buffer) {
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    char piece[4096];
    const auto [error, size] = co_await socket.async_read_some(net::buffer(piece), kToken);
    if (error) {
      co_return HttpAnswer{};
    }
    buffer.append(piece, size);
  }
  HttpAnswer answer;
  std::from_chars(buffer.data() + 9, buffer.data() + 12, answer.status);
  std::size_t length = 0;
  if (const auto at = buffer.find("Content-Length: "); at < end) {
    std::from_chars(buffer.data() + at + 16, buffer.data() + end, length);
  }
  const auto whole = end + 4 + length;
  while (buffer.size() < whole) {
    char piece[16384];
    const auto [error, size] = co_await socket.async_read_some(net::buffer(piece), kToken);
    if (error) {
      co_return HttpAnswer{};
    }
    buffer.append(piece, size);
  }
  answer.body.assign(buffer, end + 4, length);
  buffer.erase(0, whole);
  co_return answer;
}

}  // namespace

double seconds_since(steady_clock::time_point begun) {
  return std::chrono::duration<double>(steady_clock::now() - begun).count();
}

void rethrow(std::exception_ptr failure) {
  if (failure) {
    std::rethrow_exception(failure);
  }
}

net::awaitable<net::ip::tcp::socket> connected_to(std::uint16_t port) {
  net::ip::tcp::socket socket(co_await net::this_coro::executor);
  const auto [refused] =
      co_await socket.async_connect({net::ip::address_v4::loopback(), port}, kToken);
  if (refused) {
    throw std::runtime_error("cannot connect: " + refused.message());
  }
  socket.set_option(net::ip::tcp::no_delay(true));
  co_return socket;
}

net::awaitable<HttpAnswer> ask(net::ip::tcp::socket& socket, std::string& buffer,
                               const std::string& request) {
  const auto [error, sent] = co_await net::async_write(socket, net::buffer(request), kToken);
  if (error) {
    co_return HttpAnswer{};
  }
  co_return co_await receive(socket, buffer);
}

net::awaitable<void> keep_busy(std::shared_ptr<Load> load, Requests requests) {
  auto socket = co_await connected_to(load->port);
  std::string buffer;
  for (std::uint64_t number = 0; steady_clock::now() < load->until; ++number) {
    const auto text = requests(number);
    const auto begun = steady_clock::now();
    const auto answer = co_await ask(socket, buffer, text);
    if (answer.status == load->expected_status) {
      load->times_ms.push_back(seconds_since(begun) * 1e3);
      continue;
    }
    ++load->failed;
    load->first_failure = fmt::format("status {}", answer.status);
    if (answer.status == 0) {
      co_return;
    }
  }
}

Requests appends(std::uint64_t connection, std::uint64_t round, std::uint64_t size) {
  const auto data = fmt::format("{{\"text\":\"{}\"}}", std::string(size > 11 ? size - 11 : 1, 'x'));
  return [=](std::uint64_t number) {
    return fmt::format(
        "POST /streams/bench-{} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "ES-EventType: written\r\nES-EventId: 00000000-0000-4{:03x}-8{:03x}-{:012x}\r\n"
        "Content-Length: {}\r\n\r\n{}",
        connection, round, connection, number + 1, data.size(), data);
  };
}

double percentile(std::span<const double> sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

double print_times(std::string_view what, std::uint64_t connections, double seconds, Load& load) {
  if (load.times_ms.empty()) {
    throw std::runtime_error(fmt::format("{}: nothing was answered; {}", what, load.first_failure));
  }
  std::ranges::sort(load.times_ms);
  const auto rate = static_cast<double>(load.times_ms.size()) / seconds;
  std::cout << fmt::format(
                   "{:<24} {:>9.0f} a second, {:>3} connections; p50 {:.2f} ms, p99 {:.2f} ms, "
                   "longest {:.1f} ms; {} failed\n",
                   what, rate, connections, percentile(load.times_ms, 0.5),
                   percentile(load.times_ms, 0.99), load.times_ms.back(), load.failed)
            << std::flush;
  return rate;
}

}  // namespace verger::bench
