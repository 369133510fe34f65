#include "nodeagent/http/detail/transport.h"

#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace verger::http {
namespace {

using tcp = net::ip::tcp;

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(StreamSocket socket) : Transport(std::move(socket)) {}

  net::awaitable<IoResult> read_some(net::mutable_buffer into) override {
    if (timed_out()) {
      co_return finish(net::error::operation_aborted, 0);
    }
    auto [error, bytes] = co_await socket().async_read_some(into, kTuple);
    co_return finish(error, bytes);
  }

  net::awaitable<IoResult> write(net::const_buffer from) override {
    if (timed_out()) {
      co_return finish(net::error::operation_aborted, 0);
    }
    auto [error, bytes] = co_await net::async_write(socket(), from, kTuple);
    co_return finish(error, bytes);
  }

  net::awaitable<void> finish_sending() override {
    boost::system::error_code ignored;  // the peer may be gone already
    socket().shutdown(net::socket_base::shutdown_send, ignored);
    co_return;
  }

  bool quiet() override {
    if (!socket().is_open()) {
      return false;
    }
    pollfd wait{.fd = socket().native_handle(), .events = POLLIN, .revents = 0};
    return ::poll(&wait, 1, 0) == 0;
  }
};

Error bind_error(const boost::system::error_code& error, const std::string& host,
                 std::uint16_t port) {
  const auto where = fmt::format("{}:{}", host, port);
  if (error == net::error::address_in_use) {
    return Error{Errc::kConflict,
                 fmt::format("cannot listen on {}: the port is in use by another process; stop it "
                             "(`ss -ltnp 'sport = :{}'` shows which it is) or configure another "
                             "port",
                             where, port)};
  }
  if (error == boost::system::errc::address_not_available) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("cannot listen on {}: this machine does not have that address", where)};
  }
  if (error == net::error::access_denied) {
    return Error{
        Errc::kUnauthorized,
        fmt::format("cannot listen on {}: permission denied (ports below 1024 need it)", where)};
  }
  return Error{Errc::kIo, fmt::format("cannot listen on {}: {}", where, error.message())};
}

/// What a resolver that may outlive its caller reports to. getaddrinfo cannot be interrupted.
struct Resolution {
  tcp::resolver resolver;
  net::steady_timer done;
  boost::system::error_code error = net::error::timed_out;
  tcp::resolver::results_type found;
  Resolution(const net::any_io_executor& executor, std::chrono::steady_clock::time_point limit)
      : resolver(executor), done(executor, limit) {}
};

/// One try to connect. The timer's handler may run after the coroutine has resumed.
struct Attempt {
  tcp::socket socket;
  net::steady_timer timer;
  bool late = false;
  bool ended = false;
  Attempt(const net::any_io_executor& executor, std::chrono::steady_clock::time_point limit)
      : socket(executor), timer(executor, limit) {}
  /// The kernel may choose, as the local port, the very port on which no process listens.
  [[nodiscard]] bool reached_itself() const {
    boost::system::error_code local_error;
    boost::system::error_code remote_error;
    const auto local = socket.local_endpoint(local_error);
    const auto remote = socket.remote_endpoint(remote_error);
    return !local_error && !remote_error && local == remote;
  }
};

/// A server process that we start must not inherit our connections and listening ports.
void keep_from_children(int descriptor) { ::fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

}  // namespace

bool IoResult::closed_by_peer() const {
  return error == net::error::eof || error == net::error::connection_reset ||
         error == net::error::broken_pipe || error == net::ssl::error::stream_truncated;
}

std::string IoResult::text() const {
  if (timed_out) {
    return "no answer in time";
  }
  if (error == net::error::eof || error == net::ssl::error::stream_truncated) {
    return "the other side closed the connection";
  }
  return error.message();
}

Transport::Transport(StreamSocket socket)
    : socket_(std::move(socket)), timer_(socket_.get_executor(), kNever) {
  keep_from_children(socket_.native_handle());
  boost::system::error_code error;
  const auto remote = socket_.remote_endpoint(error);
  if (error) {
    return;
  }
  if (remote.protocol().family() == AF_UNIX) {
    peer_.address = "unix socket";
    peer_.is_local_socket = true;
    return;
  }
  tcp::endpoint address;
  if (remote.size() <= address.capacity()) {
    std::memcpy(address.data(), remote.data(), remote.size());
    address.resize(remote.size());
    peer_.address = address.address().to_string();
  }
  socket_.set_option(tcp::no_delay(true), error);
}

IoResult Transport::finish(boost::system::error_code error, std::size_t bytes) const {
  return IoResult{.error = error, .bytes = bytes, .timed_out = error && timed_out_};
}

// A request moves the limit several times, mostly to a later time: then the timer that already
// runs is left alone, and looks at the limit once it ends.
void Transport::expires_at(std::chrono::steady_clock::time_point limit) {
  timed_out_ = false;
  limit_ = limit;
  if (limit < next_look_) {
    look_at(limit);
  }
}

void Transport::look_at(std::chrono::steady_clock::time_point time) {
  next_look_ = time;
  timer_.expires_at(time);
  timer_.async_wait([weak = weak_from_this(), time](boost::system::error_code error) {
    const auto self = weak.lock();
    // A handler that was already on its way when the timer was moved must not act.
    if (error || self == nullptr || self->next_look_ != time) {
      return;
    }
    self->next_look_ = kNever;
    if (self->limit_ > time) {
      self->expires_at(self->limit_);
      return;
    }
    self->timed_out_ = true;
    boost::system::error_code ignored;
    self->socket_.cancel(ignored);
  });
}

void Transport::expires_after(std::chrono::steady_clock::duration limit) {
  expires_at(std::chrono::steady_clock::now() + limit);
}

void Transport::never_expires() {
  expires_at(kNever);
  timer_.cancel();
  next_look_ = kNever;
}

void Transport::close() {
  timer_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

std::shared_ptr<Transport> make_plain_transport(StreamSocket socket) {
  return std::make_shared<PlainTransport>(std::move(socket));
}

net::awaitable<Result<tcp::socket>> connect_tcp(net::any_io_executor executor, Endpoint to,
                                                std::chrono::steady_clock::time_point limit) {
  std::vector<tcp::endpoint> addresses;
  boost::system::error_code error;
  if (const auto literal = net::ip::make_address(to.host, error); !error) {
    addresses.emplace_back(literal, to.port);
  } else {
    const auto resolution = std::make_shared<Resolution>(executor, limit);
    resolution->resolver.async_resolve(
        to.host, std::to_string(to.port), tcp::resolver::numeric_service,
        [resolution](boost::system::error_code failed, tcp::resolver::results_type found) {
          resolution->error = failed;
          resolution->found = std::move(found);
          resolution->done.cancel();
        });
    co_await resolution->done.async_wait(kTuple);
    if (resolution->error) {
      resolution->resolver.cancel();
      co_return Error{Errc::kUnavailable,
                      fmt::format("{}: the name \"{}\" cannot be resolved: {}", to.url(), to.host,
                                  resolution->error.message())};
    }
    for (const auto& entry : resolution->found) {
      addresses.push_back(entry.endpoint());
    }
  }
  std::string last = "no address";
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto& address = addresses[i];
    // A name may have an address that swallows everything, and a good one after it.
    const auto now = std::chrono::steady_clock::now();
    const auto share = std::max(limit - now, std::chrono::steady_clock::duration::zero()) /
                       static_cast<std::int64_t>(addresses.size() - i);
    const auto attempt = std::make_shared<Attempt>(executor, now + share);
    attempt->timer.async_wait([attempt](boost::system::error_code stopped) {
      if (!stopped && !attempt->ended) {
        attempt->late = true;
        boost::system::error_code ignored;
        attempt->socket.close(ignored);
      }
    });
    auto [failed] = co_await attempt->socket.async_connect(address, kTuple);
    attempt->ended = true;
    attempt->timer.cancel();
    if (attempt->late) {
      last = "no connection in time";
      continue;
    }
    if (!failed && attempt->reached_itself()) {
      failed = net::error::connection_refused;
    }
    if (!failed) {
      keep_from_children(attempt->socket.native_handle());
      co_return std::move(attempt->socket);
    }
    last = failed.message();
  }
  co_return Error{Errc::kUnavailable, fmt::format("{}: cannot connect: {}", to.url(), last)};
}

Result<tcp::acceptor> listen_tcp(net::any_io_executor executor, const std::string& host,
                                 std::uint16_t port) {
  boost::system::error_code error;
  auto address = net::ip::make_address(host, error);
  if (error) {
    tcp::resolver resolver(executor);
    const auto found = resolver.resolve(host, "", tcp::resolver::passive, error);
    if (error || found.empty()) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("cannot listen on {}:{}: the name cannot be resolved: {}", host,
                               port, error.message())};
    }
    address = found.begin()->endpoint().address();
  }
  const tcp::endpoint where(address, port);
  tcp::acceptor acceptor(executor);
  acceptor.open(where.protocol(), error);
  if (error) {
    return bind_error(error, host, port);
  }
  keep_from_children(acceptor.native_handle());
  acceptor.set_option(net::socket_base::reuse_address(true), error);
  if (error) {
    return bind_error(error, host, port);
  }
  acceptor.bind(where, error);
  if (error) {
    return bind_error(error, host, port);
  }
  acceptor.listen(net::socket_base::max_listen_connections, error);
  if (error) {
    return bind_error(error, host, port);
  }
  return acceptor;
}

namespace {

/// Asio's own check throws.
Result<net::local::stream_protocol::endpoint> unix_endpoint(const std::string& path) {
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty() || path.size() > kLongest) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("{}: the path of a Unix socket may have at most {} bytes, this one has "
                    "{}; use a shorter database directory, or a link to it",
                    path, kLongest, path.size())};
  }
  return net::local::stream_protocol::endpoint(path);
}

Error socket_error(const std::string& path, const boost::system::error_code& error) {
  return Error{Errc::kIo, fmt::format("{}: cannot listen: {}", path, error.message())};
}

}  // namespace

Result<net::local::stream_protocol::socket> connect_unix(const net::any_io_executor& executor,
                                                         const std::string& path) {
  VERGER_TRY(const auto to, unix_endpoint(path));
  net::local::stream_protocol::socket socket(executor);
  boost::system::error_code error;
  // Without waiting: the kernel queues the connection, or refuses.
  socket.open(to.protocol(), error);
  socket.non_blocking(true, error);
  socket.connect(to, error);
  if (!error) {
    keep_from_children(socket.native_handle());
    return socket;
  }
  if (error == boost::system::errc::no_such_file_or_directory ||
      error == net::error::connection_refused) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: {}", path,
                             error == net::error::connection_refused ? "no process listens on it"
                                                                     : "there is no such socket")};
  }
  if (error == net::error::access_denied) {
    return Error{
        Errc::kUnauthorized,
        fmt::format("{}: permission denied: run this as the user that the node runs as", path)};
  }
  return Error{Errc::kUnavailable, fmt::format("{}: cannot connect: {}", path, error.message())};
}

Result<net::local::stream_protocol::acceptor> listen_unix(const net::any_io_executor& executor,
                                                          const std::string& path) {
  VERGER_TRY(const auto where, unix_endpoint(path));
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) {
      return Error{
          Errc::kConflict,
          fmt::format("{}: is in the way of the node's Unix socket, and is no socket: move "
                      "it away",
                      path)};
    }
    if (connect_unix(executor, path)) {
      return Error{Errc::kConflict,
                   fmt::format("{}: another process listens on it: stop that one", path)};
    }
    ::unlink(path.c_str());
  }
  boost::system::error_code error;
  net::local::stream_protocol::acceptor acceptor(executor);
  acceptor.open(where.protocol(), error);
  if (error) {
    return socket_error(path, error);
  }
  keep_from_children(acceptor.native_handle());
  // Before it has its name: at no time can another user open it.
  ::fchmod(acceptor.native_handle(), S_IRUSR | S_IWUSR);
  acceptor.bind(where, error);
  if (!error && ::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0) {
    error.assign(errno, boost::system::system_category());
  }
  if (!error) {
    acceptor.listen(net::socket_base::max_listen_connections, error);
  }
  if (error) {
    return socket_error(path, error);
  }
  return acceptor;
}

Result<Endpoint> local_endpoint(const tcp::acceptor& acceptor, bool tls) {
  boost::system::error_code error;
  const auto local = acceptor.local_endpoint(error);
  if (error) {
    return Error{Errc::kIo, fmt::format("cannot tell the listening port: {}", error.message())};
  }
  return Endpoint{.tls = tls, .host = local.address().to_string(), .port = local.port()};
}

}  // namespace verger::http
