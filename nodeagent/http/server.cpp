#include "nodeagent/http/server.h"

#include <algorithm>
#include <fmt/format.h>
#include <list>
#include <unistd.h>
#include <variant>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "nodeagent/http/detail/handler_calls.h"
#include "nodeagent/http/detail/http2_requests.h"
#include "nodeagent/http/detail/tls_transport.h"
#include "nodeagent/http/detail/wire.h"
#include "nodeagent/http/task_group.h"

namespace verger::http {
namespace {

constexpr std::size_t kLingerBytes = 1024UZ * 1024;

Response plain_text(int status, std::string text) {
  return Response{
      .status = status, .headers = {{"Content-Type", "text/plain"}}, .body = std::move(text)};
}

}  // namespace

struct Server::Impl : std::enable_shared_from_this<Impl> {
  enum class Doing : std::uint8_t { kIdle, kRequest, kStream };
  struct Connection {
    std::shared_ptr<Transport> transport;
    Doing doing = Doing::kIdle;
    bool closing = false;
    bool known = false;  ///< see ServerOptions::knows
  };

  net::any_io_executor executor;
  ServerOptions options;
  Log& log;
  StreamAcceptor acceptor;
  std::string unix_path;  ///< where it listens; empty: by TCP, or not at all
  std::shared_ptr<TaskGroup> tasks;
  std::shared_ptr<HandlerCalls> calls;
  std::list<Connection> connections;
  std::size_t shaking_hands = 0;
  bool stopping = false;

  Impl(net::any_io_executor on, ServerOptions with, Handler handler, Log& to)
      : executor(std::move(on)),
        options(std::move(with)),
        log(to),
        acceptor(executor),
        tasks(std::make_shared<TaskGroup>(executor, log, "http server")),
        calls(std::make_shared<HandlerCalls>(executor, options, std::move(handler), tasks, log)) {}

  void begin_stopping() {
    stopping = true;
    calls->server_stops();
    boost::system::error_code ignored;
    acceptor.close(ignored);
    if (!unix_path.empty()) {
      ::unlink(unix_path.c_str());
      unix_path.clear();
    }
  }

  /// False where too many connections of unidentified clients are open, and all of them are busy.
  bool has_room_for_unknown() {
    if (!options.knows) {
      return true;
    }
    const auto unknown =
        static_cast<std::size_t>(std::ranges::count(connections, false, &Connection::known)) +
        shaking_hands;
    if (unknown < options.limits.unknown_connections) {
      return true;
    }
    const auto idle = std::ranges::find_if(connections, [](const Connection& each) {
      return !each.known && each.doing == Doing::kIdle && !each.closing;
    });
    if (idle == connections.end()) {
      return false;
    }
    idle->closing = true;
    idle->transport->close();
    return true;
  }

  /// Connections whose end needs no waiting.
  void end_idle() {
    for (auto& connection : connections) {
      if (connection.doing != Doing::kRequest) {
        connection.transport->close();
      }
    }
  }

  // The coroutines hold the Impl, and the Impl holds the group that only counts them.
  static net::awaitable<void> accept(std::shared_ptr<Impl> self);
  static net::awaitable<void> refuse(StreamSocket socket);
  static net::awaitable<void> serve(std::shared_ptr<Impl> self, StreamSocket socket);
  static BodyLimitOf body_limit_for(const std::shared_ptr<Impl>& self, Connection& connection);
  static net::awaitable<void> serve_requests(std::shared_ptr<Impl> self, Connection& connection);
  static net::awaitable<bool> write_stream(std::shared_ptr<Impl> self,
                                           std::shared_ptr<Transport> transport, Response response,
                                           bool chunked, bool keep_alive);
  static net::awaitable<bool> pump(std::shared_ptr<Impl> self, std::shared_ptr<Transport> transport,
                                   const Response& response, bool chunked);
  static net::awaitable<void> linger(std::shared_ptr<Impl> self,
                                     std::shared_ptr<Transport> transport);
};

net::awaitable<void> Server::Impl::accept(std::shared_ptr<Impl> self) {
  while (!self->stopping) {
    auto [error, socket] = co_await self->acceptor.async_accept(kTuple);
    if (self->stopping || error == net::error::operation_aborted) {
      co_return;
    }
    if (error) {
      // Out of descriptors, or a connection that was gone before we took it: it will pass.
      self->log.warning("cannot accept a connection", {{"error", error.message()}});
      net::steady_timer pause(self->executor, std::chrono::milliseconds(50));
      co_await pause.async_wait(kTuple);
      continue;
    }
    const auto& limits = self->options.limits;
    const bool room = self->connections.size() + self->shaking_hands < limits.connections;
    if (!room || !self->has_room_for_unknown()) {
      self->log.warning(
          "connection refused: too many are open",
          {{"limit", std::to_string(room ? limits.unknown_connections : limits.connections)}});
      if (self->options.tls == nullptr) {
        co_await refuse(std::move(socket));
      }
      continue;
    }
    self->tasks->spawn(serve(self, std::move(socket)));
  }
}

net::awaitable<void> Server::Impl::refuse(StreamSocket socket) {
  const auto transport = make_plain_transport(std::move(socket));
  // A fresh socket takes this many bytes at once, regardless of the peer.
  transport->expires_after(std::chrono::milliseconds(100));
  Response busy{.status = 503, .reason = "Server Is Too Busy"};
  const auto head = response_head(busy, 0, false, false);
  co_await transport->write(net::buffer(head));
  co_await transport->finish_sending();
}

net::awaitable<void> Server::Impl::serve(std::shared_ptr<Impl> self, StreamSocket socket) {
  std::shared_ptr<Transport> transport;
  if (self->options.tls == nullptr) {
    transport = make_plain_transport(std::move(socket));
  } else {
    struct Count {
      std::size_t& count;
      explicit Count(std::size_t& counted) : count(counted) { ++count; }
      ~Count() { --count; }
    } count(self->shaking_hands);
    auto secured =
        co_await accept_tls(std::move(socket), self->options.tls,
                            self->options.limits.tls_handshake, self->options.http2 != nullptr);
    if (!secured.has_value()) {
      // A client that only looks at our certificate shows none, as vergerd does once a minute.
      const bool only_looks = secured.error().message.contains("did not return a certificate");
      if (only_looks) {
        self->log.debug("a connection was not accepted", {{"error", secured.error().message}});
      } else {
        self->log.info("a connection was not accepted", {{"error", secured.error().message}});
      }
      co_return;
    }
    transport = std::move(*secured);
  }
  if (self->stopping) {
    co_return;
  }
  struct Entry {
    std::list<Connection>& list;
    std::list<Connection>::iterator at;
    ~Entry() {
      at->transport->close();
      list.erase(at);
    }
  } entry{self->connections,
          self->connections.insert(self->connections.end(), Connection{.transport = transport})};
  co_await serve_requests(self, *entry.at);
}

BodyLimitOf Server::Impl::body_limit_for(const std::shared_ptr<Impl>& self,
                                         Connection& connection) {
  if (!self->options.knows) {
    return {};
  }
  // Each request shows anew who sends it: a connection may be a proxy's.
  return [self, &connection](const Request& head) {
    const bool known = self->options.knows(head);
    connection.known = connection.known || known;
    return known ? self->options.limits.body_bytes : self->options.limits.unknown_body_bytes;
  };
}

net::awaitable<void> Server::Impl::serve_requests(std::shared_ptr<Impl> self,
                                                  Connection& connection) {
  const auto transport = connection.transport;
  const auto& limits = self->options.limits;
  boost::beast::flat_buffer buffer;
  if (self->options.http2 != nullptr) {
    transport->expires_after(limits.idle);
    const auto protocol = co_await read_protocol(transport, buffer);
    if (protocol == Protocol::kNone) {
      co_return;
    }
    if (protocol == Protocol::kHttp2) {
      connection.doing = Doing::kStream;
      transport->never_expires();
      co_await serve_http2_requests(transport, std::move(buffer), self->options.http2, self->calls,
                                    limits.body_bytes, self->log);
      co_return;
    }
  }
  bool keep_alive = true;
  while (keep_alive && !self->stopping) {
    connection.doing = Doing::kIdle;
    if (buffer.size() == 0) {
      transport->expires_after(limits.idle);
      const auto first = co_await transport->read_some(buffer.prepare(4096));
      buffer.commit(first.bytes);
      if (first.error) {
        co_return;
      }
    }
    connection.doing = Doing::kRequest;
    transport->expires_after(limits.read);
    auto read = co_await read_request(transport, buffer, limits.header_bytes, limits.body_bytes,
                                      body_limit_for(self, connection));
    transport->suspend_limit();
    if (const auto* failure = std::get_if<ReadFailure>(&read)) {
      if (failure->status != 0) {
        const auto answer = plain_text(failure->status, failure->text);
        const auto bytes = response_head(answer, answer.body.size(), false, false) + answer.body;
        transport->expires_after(limits.write);
        const auto sent = co_await transport->write(net::buffer(bytes));
        if (!sent.error) {
          co_await linger(self, transport);
        }
      }
      co_return;
    }
    auto& [request, wants_keep_alive, http_1_0] = std::get<ReadRequest>(read);
    const bool head = request.method == "HEAD";
    Response response = co_await HandlerCalls::answer(self->calls, std::move(request));
    keep_alive = wants_keep_alive && !self->stopping;
    if (response.stream && !head && !has_no_body(response.status)) {
      connection.doing = Doing::kStream;
      if (self->stopping) {
        co_return;
      }
      keep_alive = keep_alive && !http_1_0;
      if (!co_await write_stream(self, transport, std::move(response), !http_1_0, keep_alive)) {
        co_return;
      }
      continue;
    }
    std::optional<std::size_t> size = response.body.size();
    if (has_no_body(response.status) || (head && response.stream)) {
      size.reset();
    }
    auto bytes = response_head(response, size, false, keep_alive && !http_1_0);
    if (http_1_0) {
      keep_alive = false;
    }
    if (!head && !has_no_body(response.status)) {
      bytes += response.body;
    }
    transport->expires_after(limits.write);
    const auto sent = co_await transport->write(net::buffer(bytes));
    if (sent.error) {
      self->log.debug("an answer was not taken", {{"error", sent.text()}});
      co_return;
    }
  }
  co_await transport->finish_sending();
}

/// True where the connection can carry another request.
net::awaitable<bool> Server::Impl::write_stream(std::shared_ptr<Impl> self,
                                                std::shared_ptr<Transport> transport,
                                                Response response, bool chunked, bool keep_alive) {
  using net::experimental::awaitable_operators::operator||;
  const auto head = response_head(response, std::nullopt, chunked, keep_alive);
  transport->expires_after(self->options.limits.write);
  if (const auto sent = co_await transport->write(net::buffer(head)); sent.error) {
    co_return false;
  }
  // The stream may wait long for its next piece, so this has to notice that the client left.
  // What a client sends meanwhile is dropped, and the connection ends with the stream.
  const auto watch = [](std::shared_ptr<Transport> peer) -> net::awaitable<void> {
    char dropped[512];
    while (!(co_await peer->read_some(net::buffer(dropped))).error) {
    }
  };
  transport->never_expires();
  co_await (pump(self, transport, response, chunked) || watch(transport));
  co_return false;
}

net::awaitable<bool> Server::Impl::pump(std::shared_ptr<Impl> self,
                                        std::shared_ptr<Transport> transport,
                                        const Response& response, bool chunked) {
  // An exception would leave the watcher running: none may get out.
  try {
    while (true) {
      auto piece = co_await response.stream();
      const bool end = !piece.has_value() || piece->empty();
      if (!piece.has_value()) {
        self->log.info("a streamed answer ended", {{"error", piece.error().message}});
        co_return false;  // without the last chunk the client sees that it is not whole
      }
      std::string bytes = std::move(*piece);
      if (chunked) {
        bytes = end ? "0\r\n\r\n" : fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
      }
      transport->expires_after(self->options.limits.write);
      const auto sent = co_await transport->write(net::buffer(bytes));
      transport->never_expires();
      if (sent.error || end) {
        co_return !sent.error;
      }
    }
  } catch (const boost::system::system_error& error) {
    if (error.code() != net::error::operation_aborted) {
      self->log.error("a streamed answer failed", {{"error", error.what()}});
    }
  } catch (const std::exception& error) {
    self->log.error("a streamed answer failed", {{"error", error.what()}});
  }
  co_return false;
}

/// A close with unread bytes resets the connection, and the client may never see our answer.
net::awaitable<void> Server::Impl::linger(std::shared_ptr<Impl> self,
                                          std::shared_ptr<Transport> transport) {
  transport->expires_after(self->options.limits.linger);
  co_await transport->finish_sending();
  char dropped[4096];
  std::size_t total = 0;
  while (total < kLingerBytes && !self->stopping) {
    const auto got = co_await transport->read_some(net::buffer(dropped));
    if (got.error) {
      co_return;
    }
    total += got.bytes;
  }
}

Server::Server(net::any_io_executor executor, ServerOptions options, Handler handler, Log& log)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(options), std::move(handler),
                                   log)) {}

Server::~Server() {
  impl_->begin_stopping();
  for (auto& connection : impl_->connections) {
    connection.transport->close();
  }
  impl_->tasks->cancel();
}

Result<Endpoint> Server::listen() {
  VERGER_TRY(auto acceptor, listen_tcp(impl_->executor, impl_->options.host, impl_->options.port));
  VERGER_TRY(auto where, local_endpoint(acceptor, impl_->options.tls != nullptr));
  impl_->acceptor = std::move(acceptor);
  impl_->tasks->spawn(Impl::accept(impl_));
  return where;
}

Result<void> Server::listen_at(const std::string& path) {
  VERGER_TRY(auto acceptor, listen_unix(impl_->executor, path));
  impl_->acceptor = std::move(acceptor);
  impl_->unix_path = path;
  impl_->tasks->spawn(Impl::accept(impl_));
  return {};
}

net::awaitable<void> Server::stop(std::chrono::milliseconds grace) {
  const auto impl = impl_;
  impl->begin_stopping();
  impl->end_idle();
  co_await impl->tasks->stop(grace);
}

std::size_t Server::connection_count() const { return impl_->connections.size(); }

std::size_t Server::busy_connection_count() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      impl_->connections,
      [](const Impl::Connection& each) { return each.doing != Impl::Doing::kIdle; }));
}

}  // namespace verger::http
