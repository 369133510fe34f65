#include "nodeagent/http/detail/http2_requests.h"

#include <string>
#include <string_view>
#include <utility>

#include "nodeagent/http/byte_stream.h"
#include "nodeagent/http/detail/wire.h"
#include "nodeagent/http/http2.h"
#include "nodeagent/http/timers.h"

namespace verger::http {
namespace {

/// A connection whose first bytes have been read already.
class TransportStream final : public ByteStream {
 public:
  TransportStream(std::shared_ptr<Transport> transport, boost::beast::flat_buffer read)
      : transport_(std::move(transport)), read_(std::move(read)) {}

  net::awaitable<std::size_t> read_some(net::mutable_buffer into) override {
    if (read_.size() > 0) {
      const auto count = net::buffer_copy(into, read_.data());
      read_.consume(count);
      co_return count;
    }
    const auto got = co_await transport_->read_some(into);
    co_return got.error ? 0 : got.bytes;
  }
  net::awaitable<bool> write(std::string_view bytes) override {
    const auto sent = co_await transport_->write(net::buffer(bytes));
    co_return !sent.error;
  }
  void close() override { transport_->close(); }
  [[nodiscard]] const Peer& peer() const override { return transport_->peer(); }

 private:
  std::shared_ptr<Transport> transport_;
  boost::beast::flat_buffer read_;
};

/// A request for the server's handler.
net::awaitable<void> answer_exchange(std::shared_ptr<Http2Exchange> exchange,
                                     std::shared_ptr<HandlerCalls> calls, std::size_t body_limit) {
  Request request = exchange->head();
  bool too_large = false;
  while (!too_large) {
    const auto piece = co_await exchange->read();
    if (!piece.has_value()) {
      co_return;
    }
    if (piece->empty()) {
      break;
    }
    request.body += *piece;
    too_large = request.body.size() > body_limit;
  }
  const bool head = request.method == "HEAD";
  const auto response = too_large ? Response{.status = 413,
                                             .headers = {{"Content-Type", "text/plain"}},
                                             .body = "the body is too large"}
                                  : co_await HandlerCalls::answer(calls, std::move(request));
  const bool empty = head || has_no_body(response.status);
  if (response.stream && !empty) {
    exchange->send_head(response.status, response.headers, false);
    while (!exchange->cancelled()) {
      auto piece = co_await response.stream();
      if (!piece.has_value()) {
        co_return;  // the reset shows the client that it is not whole
      }
      if (piece->empty()) {
        break;
      }
      if (!co_await exchange->write(*std::move(piece))) {
        co_return;
      }
    }
    exchange->end({});
    co_return;
  }
  auto headers = response.headers;
  if (!has_no_body(response.status)) {
    headers.set("content-length", std::to_string(response.body.size()));
  }
  exchange->send_head(response.status, headers, empty || response.body.empty());
  if (!empty && !response.body.empty() && co_await exchange->write(response.body)) {
    exchange->end({});
  }
}

}  // namespace

net::awaitable<Protocol> read_protocol(std::shared_ptr<Transport> transport,
                                       boost::beast::flat_buffer& buffer) {
  while (true) {
    const std::string_view read(static_cast<const char*>(buffer.data().data()), buffer.size());
    if (read.size() >= kHttp2Preface.size() || !kHttp2Preface.starts_with(read)) {
      co_return read.starts_with(kHttp2Preface) ? Protocol::kHttp2 : Protocol::kHttp1;
    }
    const auto got = co_await transport->read_some(buffer.prepare(4096));
    buffer.commit(got.bytes);
    if (got.error) {
      co_return Protocol::kNone;
    }
  }
}

net::awaitable<void> serve_http2_requests(std::shared_ptr<Transport> transport,
                                          boost::beast::flat_buffer read,
                                          std::shared_ptr<const Http2Service> service,
                                          std::shared_ptr<HandlerCalls> calls,
                                          std::size_t body_limit, Log& log) {
  auto options = service->options;
  co_await serve_http2(
      std::make_shared<TransportStream>(std::move(transport), std::move(read)),
      [service = std::move(service), calls = std::move(calls),
       body_limit](std::shared_ptr<Http2Exchange> exchange) {
        return service->takes(exchange->head())
                   ? service->calls(std::move(exchange))
                   : answer_exchange(std::move(exchange), calls, body_limit);
      },
      options, system_timers(), log);
}

}  // namespace verger::http
