#pragma once

#include <expected>
#include <functional>
#include <google/protobuf/message_lite.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "nodeagent/grpc/framing.h"
#include "nodeagent/grpc/status.h"
#include "nodeagent/http/http2.h"

namespace verger::grpc {

/// One call on the server's side, on the executor of its connection.
class ServerCall {
 public:
  ServerCall(std::shared_ptr<http::Http2Exchange> exchange, std::size_t most_bytes,
             Encoding encoding);

  [[nodiscard]] const http::Request& head() const { return exchange_->head(); }
  /// The next message; nullopt: the client sends no more. Error: how the call is to end.
  net::awaitable<std::expected<std::optional<std::string>, Status>> read();
  /// The next message as `Message`; what is none ends the call as the server's handlers do.
  template <class Message>
  net::awaitable<std::expected<std::optional<Message>, Status>> next();
  /// The one message of a call that has one.
  template <class Message>
  net::awaitable<std::expected<Message, Status>> only();
  /// Returns once there is room for more; false: the client no longer waits.
  net::awaitable<bool> write(const google::protobuf::MessageLite& message);

  /// The answer begins, ahead of its first message.
  void send_head();
  /// Answers with a status of HTTP and a body, and none of gRPC: the call is over.
  net::awaitable<void> answer_as_http(int status, std::string content_type, std::string body);

  /// The client has cancelled, its connection is gone, or the deadline has passed.
  [[nodiscard]] bool cancelled() const { return finished_ || exchange_->cancelled(); }
  /// The client has ended its side. Only what has been read tells it.
  [[nodiscard]] bool half_closed() const { return half_closed_; }
  /// Called once the call is cancelled; for handlers that wait for something else.
  void on_cancel(std::function<void()> call) { exchange_->on_cancel = std::move(call); }
  /// Ends the call; what comes after it is dropped.
  void finish(const Status& status);
  /// The same, and waiting in read() and write() ends.
  void abort(const Status& status);

 private:
  std::shared_ptr<http::Http2Exchange> exchange_;
  MessageReader messages_;
  bool half_closed_ = false;
  bool any_sent_ = false;
  bool finished_ = false;
};

/// For what a handler returns to a client that is gone.
Status client_gone();

template <class Message>
net::awaitable<std::expected<std::optional<Message>, Status>> ServerCall::next() {
  auto bytes = co_await read();
  if (!bytes) {
    co_return std::unexpected(std::move(bytes).error());
  }
  if (!*bytes) {
    co_return std::nullopt;
  }
  std::optional<Message> message(std::in_place);
  if (!message->ParseFromString(**bytes)) {
    co_return std::unexpected(handler_failed());
  }
  co_return message;
}

template <class Message>
net::awaitable<std::expected<Message, Status>> ServerCall::only() {
  auto first = co_await read();
  if (first && !*first) {
    co_return std::unexpected(Status{.code = Code::kInternal, .message = "Incomplete message."});
  }
  if (!first) {
    co_return std::unexpected(std::move(first).error());
  }
  const auto second = co_await read();
  if (!second) {
    co_return std::unexpected(second.error());
  }
  if (*second) {
    co_return std::unexpected(
        Status{.code = Code::kInternal, .message = "Additional data after the message received."});
  }
  Message message;
  if (!message.ParseFromString(**first)) {
    co_return std::unexpected(handler_failed());
  }
  co_return message;
}

}  // namespace verger::grpc
