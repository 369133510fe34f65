#include "tests/support/processes/slow_line.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace verger::test {
namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;
using std::chrono::steady_clock;
constexpr auto kAsTuple = net::as_tuple(net::use_awaitable);

/// What passes at a time: at a rate of 1 MiB/s in 16 ms.
constexpr std::size_t kPiece = 16384;

}  // namespace

struct SlowLine::Impl {
  Impl(std::uint16_t server_port, std::uint64_t bytes_per_second)
      : server(net::ip::address_v4::loopback(), server_port),
        rate(static_cast<double>(bytes_per_second)),
        acceptor(context, tcp::endpoint(net::ip::address_v4::loopback(), 0)) {
    spawn(accept());
    thread = std::thread([this] { context.run(); });
  }
  ~Impl() {
    context.stop();
    thread.join();
  }

  struct Way {
    steady_clock::time_point free{};  ///< from then on more may pass
    std::atomic<std::uint64_t> passed = 0;
  };
  struct Connection {
    explicit Connection(tcp::socket from) : near(std::move(from)), far(near.get_executor()) {}
    tcp::socket near;
    tcp::socket far;
  };

  void spawn(net::awaitable<void> work) {
    net::co_spawn(context, std::move(work), [](const std::exception_ptr& failure) {
      if (failure) {
        std::rethrow_exception(failure);
      }
    });
  }

  net::awaitable<void> accept() {
    for (;;) {
      auto [error, socket] = co_await acceptor.async_accept(kAsTuple);
      if (error) {
        co_return;
      }
      spawn(serve(std::make_shared<Connection>(std::move(socket))));
    }
  }

  net::awaitable<void> serve(std::shared_ptr<Connection> connection) {
    const auto [error] = co_await connection->far.async_connect(server, kAsTuple);
    if (!error) {
      spawn(pump(connection, connection->near, connection->far, there));
      spawn(pump(connection, connection->far, connection->near, back));
    }
  }

  net::awaitable<void> pump(std::shared_ptr<Connection> /*connection*/, tcp::socket& from,
                            tcp::socket& to, Way& way) {
    std::vector<char> piece(kPiece);
    net::steady_timer timer(context);
    error_code ignored;
    for (;;) {
      const auto [error, size] = co_await from.async_read_some(net::buffer(piece), kAsTuple);
      if (error) {
        to.shutdown(tcp::socket::shutdown_send, ignored);
        co_return;
      }
      const auto takes = std::chrono::duration_cast<steady_clock::duration>(
          std::chrono::duration<double>(static_cast<double>(size) / rate));
      way.free = std::max(way.free, steady_clock::now()) + takes;
      way.passed += size;
      timer.expires_at(way.free);
      co_await timer.async_wait(kAsTuple);
      const auto [lost, sent] =
          co_await net::async_write(to, net::buffer(piece.data(), size), kAsTuple);
      if (lost) {
        from.close(ignored);
        co_return;
      }
    }
  }

  net::io_context context{1};
  tcp::endpoint server;
  double rate;
  tcp::acceptor acceptor;
  Way there;
  Way back;
  std::thread thread;
};

SlowLine::SlowLine(std::uint16_t server_port, std::uint64_t bytes_per_second)
    : impl_(std::make_unique<Impl>(server_port, bytes_per_second)) {}
SlowLine::~SlowLine() = default;

std::uint16_t SlowLine::port() const { return impl_->acceptor.local_endpoint().port(); }
std::uint64_t SlowLine::received() const { return impl_->back.passed; }

}  // namespace verger::test
