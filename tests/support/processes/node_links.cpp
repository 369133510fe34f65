#include "tests/support/processes/node_links.h"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <list>
#include <map>
#include <thread>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>

#include "tests/support/processes/ports.h"

namespace verger::test {
namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;
constexpr auto kTuple = net::as_tuple(net::use_awaitable);

tcp::endpoint at(std::uint16_t port) { return {net::ip::address_v4::loopback(), port}; }

/// Both ends see that the other one is gone.
void reset(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::socket::linger(true, 0), ignored);
  socket.close(ignored);
}

}  // namespace

struct NodeLinks::Impl {
  struct Link;
  struct Connection {
    Connection(Link& of, tcp::socket from)
        : link(of), near(std::move(from)), far(near.get_executor()) {}
    Link& link;
    tcp::socket near;  ///< to the node that connected
    tcp::socket far;
    bool closed = false;
    bool has_held = false;
    void close() {
      closed = true;
      reset(near);
      reset(far);
    }
  };
  /// One way, one port.
  struct Link {
    Link(Impl& of, std::uint16_t listens, std::uint16_t leads)
        : all(of), port(listens), target(leads), acceptor(of.context), changed(of.context) {
      changed.expires_at(net::steady_timer::time_point::max());
    }
    Impl& all;
    std::uint16_t port;
    std::uint16_t target;
    tcp::acceptor acceptor;
    net::steady_timer changed;
    std::list<std::weak_ptr<Connection>> connections;
    bool down = false;
    bool refused = false;
    bool refusal_seen = false;
    bool silent_there = false;  ///< from the node that connects
    bool silent_back = false;

    [[nodiscard]] bool silent() const { return silent_there || silent_back; }
    void settle();
    void reset_all();
  };

  explicit Impl(std::vector<std::vector<std::uint16_t>> ports_of_nodes);
  ~Impl() {
    context.stop();
    thread.join();
  }

  template <class Action>
  void run(Action action) {
    net::post(context, net::use_future(std::move(action))).get();
  }
  template <class Action>
  void between(std::size_t from, std::size_t to, Action action) {
    for (auto& link : links.at({from, to})) {
      action(*link);
      link->settle();
    }
  }
  void spawn(net::awaitable<void> work) {
    net::co_spawn(context, std::move(work), [](const std::exception_ptr& failure) {
      if (failure) {
        std::rethrow_exception(failure);
      }
    });
  }
  static net::awaitable<void> accept(Link& link);
  static net::awaitable<void> serve(std::shared_ptr<Connection> connection);
  static net::awaitable<void> pump(std::shared_ptr<Connection> connection, bool there);
  static net::awaitable<void> wait_while(std::shared_ptr<Connection> connection, bool there,
                                         bool back);

  net::io_context context{1};
  std::vector<std::vector<std::uint16_t>> ports;
  PortLease lease;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::unique_ptr<Link>>> links;
  std::atomic<int> resets = 0;
  std::atomic<int> held = 0;
  std::thread thread;
};

NodeLinks::Impl::Impl(std::vector<std::vector<std::uint16_t>> ports_of_nodes)
    : ports(std::move(ports_of_nodes)),
      lease(ports.size() * (ports.size() - 1) * ports.front().size()) {
  std::size_t next = 0;
  for (std::size_t from = 0; from < ports.size(); ++from) {
    for (std::size_t to = 0; to < ports.size(); ++to) {
      for (const auto port : from == to ? std::vector<std::uint16_t>() : ports[to]) {
        auto& link =
            links[{from, to}].emplace_back(std::make_unique<Link>(*this, lease[next++], port));
        link->settle();
      }
    }
  }
  thread = std::thread([this] {
    const auto work = net::make_work_guard(context);
    context.run();
  });
}

/// Makes it listen or not, and wakes what waits for a change.
void NodeLinks::Impl::Link::settle() {
  const bool listens = !down && !(refused && refusal_seen);
  if (!listens && acceptor.is_open()) {
    acceptor.close();
  }
  if (listens && !acceptor.is_open()) {
    acceptor.open(tcp::v4());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(at(port));
    acceptor.listen();
    all.spawn(accept(*this));
  }
  changed.cancel();
}

void NodeLinks::Impl::Link::reset_all() {
  for (const auto& weak : connections) {
    if (const auto connection = weak.lock(); connection && !connection->closed) {
      connection->close();
      refusal_seen = true;
      ++all.resets;
    }
  }
}

net::awaitable<void> NodeLinks::Impl::accept(Link& link) {
  for (;;) {
    auto [error, socket] = co_await link.acceptor.async_accept(kTuple);
    if (error == net::error::operation_aborted || error == net::error::bad_descriptor) {
      co_return;
    }
    if (error) {
      continue;
    }
    if (link.refused) {
      reset(socket);
      link.refusal_seen = true;
      ++link.all.resets;
      link.acceptor.close();
      co_return;
    }
    auto connection = std::make_shared<Connection>(link, std::move(socket));
    std::erase_if(link.connections, [](const auto& weak) { return weak.expired(); });
    link.connections.push_back(connection);
    link.all.spawn(serve(std::move(connection)));
  }
}

/// Until what is sent in this direction (either of both) arrives again.
net::awaitable<void> NodeLinks::Impl::wait_while(std::shared_ptr<Connection> connection, bool there,
                                                 bool back) {
  auto& link = connection->link;
  const auto silent = [&] {
    return !connection->closed && ((there && link.silent_there) || (back && link.silent_back));
  };
  if (silent()) {
    connection->has_held = true;
    ++link.all.held;
  }
  while (silent()) {
    co_await link.changed.async_wait(kTuple);
  }
}

net::awaitable<void> NodeLinks::Impl::serve(std::shared_ptr<Connection> connection) {
  // Where either way is cut no connection is made.
  co_await wait_while(connection, true, true);
  if (connection->closed) {
    co_return;
  }
  const auto [error] = co_await connection->far.async_connect(at(connection->link.target), kTuple);
  if (error || connection->closed) {
    connection->close();
    co_return;
  }
  error_code ignored;
  connection->near.set_option(tcp::no_delay(true), ignored);
  connection->far.set_option(tcp::no_delay(true), ignored);
  auto& all = connection->link.all;
  all.spawn(pump(connection, true));
  all.spawn(pump(std::move(connection), false));
}

net::awaitable<void> NodeLinks::Impl::pump(std::shared_ptr<Connection> connection, bool there) {
  auto& from = there ? connection->near : connection->far;
  auto& to = there ? connection->far : connection->near;
  std::vector<char> buffer(65536);
  for (;;) {
    const auto [error, size] = co_await from.async_read_some(net::buffer(buffer), kTuple);
    co_await wait_while(connection, there, !there);
    if (connection->closed) {
      co_return;
    }
    if (error == net::error::eof) {
      error_code ignored;
      to.shutdown(tcp::socket::shutdown_send, ignored);
      co_return;
    }
    const auto sent =
        error
            ? error
            : std::get<0>(co_await net::async_write(to, net::buffer(buffer.data(), size), kTuple));
    if (sent) {
      connection->close();
      co_return;
    }
  }
}

NodeLinks::NodeLinks(std::vector<std::vector<std::uint16_t>> ports)
    : impl_(std::make_unique<Impl>(std::move(ports))) {}

NodeLinks::~NodeLinks() = default;

std::string NodeLinks::detours_of(std::size_t node) const {
  std::vector<std::string> detours;
  for (const auto& [way, links] : impl_->links) {
    for (const auto& link : links) {
      if (way.first == node) {
        detours.push_back(fmt::format("127.0.0.1:{}=127.0.0.1:{}", link->target, link->port));
      }
    }
  }
  return fmt::format("{}", fmt::join(detours, ","));
}

void NodeLinks::silence(std::size_t from, std::size_t to) {
  impl_->run([&] {
    impl_->between(from, to, [](auto& link) { link.silent_there = true; });
    impl_->between(to, from, [](auto& link) { link.silent_back = true; });
  });
}

void NodeLinks::refuse(std::size_t from, std::size_t to) {
  impl_->run([&] {
    impl_->between(from, to, [](auto& link) {
      link.refused = true;
      link.refusal_seen = false;
      link.reset_all();
    });
  });
}

void NodeLinks::set_down(std::size_t node, bool down) {
  impl_->run([&] {
    for (std::size_t other = 0; other < impl_->ports.size(); ++other) {
      if (other != node) {
        impl_->between(other, node, [down](auto& link) { link.down = down; });
      }
    }
  });
}

void NodeLinks::heal(std::size_t a, std::size_t b, Held held) {
  const auto whole = [held](auto& link) {
    for (const auto& weak : link.connections) {
      if (const auto connection = weak.lock(); connection && connection->has_held) {
        connection->has_held = false;
        if (held == Held::kLost) {
          connection->close();
        }
      }
    }
    link.refused = link.silent_there = link.silent_back = false;
  };
  impl_->run([&] {
    impl_->between(a, b, whole);
    impl_->between(b, a, whole);
  });
}

NodeLinks::Counts NodeLinks::counts() const {
  return {.reset = impl_->resets, .held = impl_->held};
}

}  // namespace verger::test
