#include "tests/integration/http/loopback.h"

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace verger::http::test {

using tcp = net::ip::tcp;

void Loopback::run(net::awaitable<void> work) {
  bool ended = false;
  net::co_spawn(context, std::move(work), [&](std::exception_ptr failure) {
    ended = true;
    context.stop();
    if (failure) {
      std::rethrow_exception(failure);
    }
  });
  context.restart();
  context.run_for(std::chrono::seconds(20));
  ASSERT_TRUE(ended) << "the test's coroutine hangs";
}

net::awaitable<std::shared_ptr<RawPeer>> RawPeer::connect(Endpoint to) {
  tcp::socket socket(co_await net::this_coro::executor);
  co_await socket.async_connect(tcp::endpoint(net::ip::make_address(to.host), to.port),
                                net::use_awaitable);
  co_return std::make_shared<RawPeer>(std::move(socket));
}

net::awaitable<void> RawPeer::write(std::string bytes) {
  co_await net::async_write(socket_, net::buffer(bytes), net::use_awaitable);
}

net::awaitable<std::string> RawPeer::read_until(std::string end) {
  char piece[4096];
  while (!buffer_.contains(end)) {
    auto [error, size] =
        co_await socket_.async_read_some(net::buffer(piece), net::as_tuple(net::use_awaitable));
    buffer_.append(piece, size);
    if (error) {
      break;
    }
  }
  const auto at = buffer_.find(end);
  const auto size = at == std::string::npos ? buffer_.size() : at + end.size();
  auto out = buffer_.substr(0, size);
  buffer_.erase(0, size);
  co_return out;
}

net::awaitable<std::string> RawPeer::read_to_end() {
  co_return co_await read_until(std::string("\0never\0", 7));
}

void RawPeer::abort() {
  socket_.set_option(net::socket_base::linger(true, 0));
  socket_.close();
}

net::awaitable<void> RawPeer::finish() {
  socket_.shutdown(tcp::socket::shutdown_send);
  tcp_info info{};
  while (info.tcpi_state != TCP_FIN_WAIT2) {
    co_await pause(std::chrono::milliseconds(1));
    socklen_t size = sizeof(info);
    if (::getsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
      throw std::runtime_error("getsockopt(TCP_INFO)");
    }
  }
}

RawServer::RawServer(net::io_context& context)
    : acceptor_(context, tcp::endpoint(net::ip::make_address("127.0.0.1"), 0)) {}

Endpoint RawServer::endpoint() const {
  return Endpoint{false, "127.0.0.1", acceptor_.local_endpoint().port()};
}

net::awaitable<std::shared_ptr<RawPeer>> RawServer::accept() {
  co_return std::make_shared<RawPeer>(co_await acceptor_.async_accept(net::use_awaitable));
}

net::awaitable<void> pause(std::chrono::milliseconds time) {
  net::steady_timer timer(co_await net::this_coro::executor, time);
  co_await timer.async_wait(net::use_awaitable);
}

}  // namespace verger::http::test
