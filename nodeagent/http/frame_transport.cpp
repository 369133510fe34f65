#include "nodeagent/http/frame_transport.h"

#include <fmt/format.h>
#include <list>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nodeagent/http/detail/tls_transport.h"
#include "nodeagent/http/detail/transport.h"
#include "nodeagent/http/task_group.h"

namespace verger::http {
namespace {

using tcp = net::ip::tcp;
constexpr std::string_view kNotOurs =
    "Verger: this port speaks Verger's replication protocol and nothing else. A cluster of Verger "
    "nodes cannot be mixed with other servers; HTTP is on the node's HTTP port.\r\n";

/// Fills `into`; false in `whole` where the connection ended before its first byte.
net::awaitable<IoResult> read_all(std::shared_ptr<Transport> transport, MutableBytes into) {
  IoResult total;
  while (total.bytes < into.size()) {
    const auto rest = into.subspan(total.bytes);
    const auto got = co_await transport->read_some(net::buffer(rest.data(), rest.size()));
    total.bytes += got.bytes;
    if (got.error) {
      total.error = got.error;
      total.timed_out = got.timed_out;
      break;
    }
  }
  co_return total;
}

class TcpFrames final : public FrameConnection {
 public:
  TcpFrames(std::shared_ptr<Transport> transport, std::string name)
      : transport_(std::move(transport)), name_(std::move(name)) {}
  ~TcpFrames() override { transport_->close(); }

  net::awaitable<Result<void>> send(Bytes frame) override {
    const auto transport = transport_;
    const auto name = name_;
    if (frame.size() > kMaxFrameSize) {
      co_return Error{Errc::kInvalidArgument,
                      fmt::format("{}: a frame of {} bytes is above the limit of {}", name,
                                  frame.size(), kMaxFrameSize)};
    }
    std::byte size[4];
    store_le(size, static_cast<std::uint32_t>(frame.size()));
    frame.insert(frame.begin(), std::begin(size), std::end(size));
    const auto sent = co_await transport->write(net::buffer(frame));
    if (sent.error) {
      // Half a frame may be out: nothing that follows would be understood.
      transport->close();
      co_return Error{Errc::kUnavailable, fmt::format("{}: {}", name, sent.text())};
    }
    co_return Result<void>{};
  }

  net::awaitable<Result<Bytes>> receive() override {
    const auto transport = transport_;
    const auto name = name_;
    Bytes head(4);
    auto got = co_await read_all(transport, head);
    if (got.error) {
      co_return Error{Errc::kUnavailable, fmt::format("{}: {}", name, got.text())};
    }
    const auto size = load_le<std::uint32_t>(head.data());
    if (size > kMaxFrameSize) {
      transport->close();
      co_return Error{Errc::kCorruption,
                      fmt::format("{}: a frame says it has {} bytes, the limit is {}", name, size,
                                  kMaxFrameSize)};
    }
    Bytes frame(size);
    got = co_await read_all(transport, frame);
    if (got.error) {
      co_return Error{Errc::kUnavailable,
                      fmt::format("{}: in the middle of a frame: {}", name, got.text())};
    }
    co_return frame;
  }

  void close() override { transport_->close(); }

 private:
  std::shared_ptr<Transport> transport_;
  std::string name_;
};

}  // namespace

TcpFrameTransport::TcpFrameTransport(net::any_io_executor executor, std::shared_ptr<TlsContext> tls)
    : executor_(std::move(executor)), tls_(std::move(tls)) {}

net::awaitable<Result<std::shared_ptr<FrameConnection>>> TcpFrameTransport::connect(
    Endpoint to, std::chrono::milliseconds deadline) {
  const auto limit = std::chrono::steady_clock::now() + deadline;
  const auto name = fmt::format("{}:{}", to.host, to.port);
  const auto tls = tls_;
  if (to.tls && tls == nullptr) {
    co_return Error{Errc::kUnavailable,
                    fmt::format("{}: no TLS settings (trusted roots) are configured", name)};
  }
  VERGER_CO_TRY(auto socket, co_await connect_tcp(executor_, to, limit));
  std::shared_ptr<Transport> transport;
  if (to.tls) {
    VERGER_CO_TRY(transport, co_await connect_tls(std::move(socket), tls, to, limit));
  } else {
    transport = make_plain_transport(std::move(socket));
  }
  // The destructor closes the connection on every way out.
  std::shared_ptr<FrameConnection> connection = std::make_shared<TcpFrames>(transport, name);
  transport->expires_at(limit);
  const auto hello = encode_hello({});
  if (const auto sent = co_await transport->write(net::buffer(hello)); sent.error) {
    co_return Error{Errc::kUnavailable, fmt::format("{}: {}", name, sent.text())};
  }
  Bytes answer(FrameHello::kSize);
  const auto got = co_await read_all(transport, answer);
  if (got.error && got.bytes == 0) {
    co_return Error{Errc::kUnavailable,
                    fmt::format("{}: no hello of a Verger node: {}", name, got.text())};
  }
  auto theirs = decode_hello(ByteView(answer).first(got.bytes));
  if (!theirs.has_value()) {
    co_return theirs.error().within(name);
  }
  if (theirs->status != 0 || theirs->version != FrameHello::kVersion) {
    co_return Error{Errc::kUnsupported,
                    fmt::format("{}: it speaks version {} of the replication protocol and we speak "
                                "{}; run the same Verger version on all nodes",
                                name, theirs->version, FrameHello::kVersion)};
  }
  transport->never_expires();
  co_return connection;
}

struct FrameAcceptor::Impl {
  net::any_io_executor executor;
  FrameAcceptorOptions options;
  FrameHandler handler;
  Log& log;
  tcp::acceptor acceptor;
  TaskGroup tasks;
  /// Connections whose TLS handshake is under way: they count, and are ended, like those in `open`.
  TaskGroup shaking_hands;
  std::list<std::shared_ptr<Transport>> open;
  bool stopping = false;

  Impl(net::any_io_executor on, FrameAcceptorOptions with, FrameHandler work, Log& to)
      : executor(std::move(on)),
        options(std::move(with)),
        handler(std::move(work)),
        log(to),
        acceptor(executor),
        tasks(executor, log, "frame acceptor"),
        shaking_hands(executor, log, "frame acceptor, TLS") {}

  void shut() {
    stopping = true;
    boost::system::error_code ignored;
    acceptor.close(ignored);
    for (const auto& transport : open) {
      transport->close();
    }
    shaking_hands.cancel();
  }

  static net::awaitable<void> accept(std::shared_ptr<Impl> self);
  static net::awaitable<void> shake_hands(std::shared_ptr<Impl> self, tcp::socket socket);
  static net::awaitable<void> serve(std::shared_ptr<Impl> self,
                                    std::shared_ptr<Transport> transport);
  static net::awaitable<bool> greet(std::shared_ptr<Impl> self,
                                    std::shared_ptr<Transport> transport);
};

net::awaitable<void> FrameAcceptor::Impl::accept(std::shared_ptr<Impl> self) {
  while (!self->stopping) {
    auto [error, socket] = co_await self->acceptor.async_accept(kTuple);
    if (self->stopping || error == net::error::operation_aborted) {
      co_return;
    }
    if (error) {
      self->log.warning("cannot accept a replication connection", {{"error", error.message()}});
      net::steady_timer pause(self->executor, std::chrono::milliseconds(50));
      co_await pause.async_wait(kTuple);
    } else if (self->open.size() + self->shaking_hands.size() >= self->options.connections) {
      self->log.warning("replication connection refused: too many are open",
                        {{"limit", std::to_string(self->options.connections)}});
    } else if (self->options.tls != nullptr) {
      self->shaking_hands.spawn(shake_hands(self, std::move(socket)));
    } else {
      self->tasks.spawn(serve(self, make_plain_transport(std::move(socket))));
    }
  }
}

net::awaitable<void> FrameAcceptor::Impl::shake_hands(std::shared_ptr<Impl> self,
                                                      tcp::socket socket) {
  auto secured = co_await accept_tls(std::move(socket), self->options.tls, self->options.hello);
  if (secured.has_value()) {
    self->tasks.spawn(serve(self, std::move(*secured)));
  } else {
    self->log.warning("replication connection refused", {{"error", secured.error().message}});
  }
}

net::awaitable<void> FrameAcceptor::Impl::serve(std::shared_ptr<Impl> self,
                                                std::shared_ptr<Transport> transport) {
  if (self->stopping) {
    co_return;
  }
  struct Entry {
    std::list<std::shared_ptr<Transport>>& list;
    std::list<std::shared_ptr<Transport>>::iterator at;
    ~Entry() {
      (*at)->close();
      list.erase(at);
    }
  } entry{self->open, self->open.insert(self->open.end(), transport)};
  if (co_await greet(self, transport)) {
    co_await self->handler(std::make_shared<TcpFrames>(transport, transport->peer().address));
  }
}

net::awaitable<bool> FrameAcceptor::Impl::greet(std::shared_ptr<Impl> self,
                                                std::shared_ptr<Transport> transport) {
  transport->expires_after(self->options.hello);
  Bytes theirs(FrameHello::kSize);
  const auto got = co_await read_all(transport, theirs);
  const auto hello = decode_hello(ByteView(theirs).first(got.bytes));
  if (!hello.has_value()) {
    self->log.warning("replication connection refused",
                      {{"peer", transport->peer().address},
                       {"error", got.bytes == 0 ? got.text() : hello.error().message}});
    if (got.bytes > 0) {
      co_await transport->write(net::buffer(kNotOurs));
    }
  } else if (hello->version != FrameHello::kVersion) {
    self->log.warning("replication connection refused: another version of the protocol",
                      {{"peer", transport->peer().address},
                       {"theirs", std::to_string(hello->version)},
                       {"ours", std::to_string(FrameHello::kVersion)}});
    const auto answer = encode_hello({.version = FrameHello::kVersion, .status = 1});
    co_await transport->write(net::buffer(answer));
  } else {
    const auto answer = encode_hello({});
    const auto sent = co_await transport->write(net::buffer(answer));
    transport->never_expires();
    co_return !sent.error;
  }
  // Unread bytes would turn the close into a reset, and the text might be lost.
  co_await transport->finish_sending();
  std::byte dropped[512];
  for (int reads = 0; reads < 64; ++reads) {
    if ((co_await transport->read_some(net::buffer(dropped))).error) {
      break;
    }
  }
  co_return false;
}

FrameAcceptor::FrameAcceptor(net::any_io_executor executor, FrameAcceptorOptions options,
                             FrameHandler handler, Log& log)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(options), std::move(handler),
                                   log)) {}

FrameAcceptor::~FrameAcceptor() {
  impl_->shut();
  impl_->tasks.cancel();
}

Result<Endpoint> FrameAcceptor::listen() {
  VERGER_TRY(impl_->acceptor,
             listen_tcp(impl_->executor, impl_->options.host, impl_->options.port));
  VERGER_TRY(auto where, local_endpoint(impl_->acceptor, impl_->options.tls != nullptr));
  impl_->tasks.spawn(Impl::accept(impl_));
  return where;
}

net::awaitable<void> FrameAcceptor::stop(std::chrono::milliseconds grace) {
  const auto impl = impl_;
  impl->shut();
  co_await impl->shaking_hands.stop(std::chrono::milliseconds(0));
  co_await impl->tasks.stop(grace);
}

}  // namespace verger::http
