#pragma once

#include <chrono>
#include <cstddef>
#include <google/protobuf/message_lite.h>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "engine/base/result.h"
#include "nodeagent/grpc/framing.h"
#include "nodeagent/grpc/status.h"
#include "nodeagent/http/http2_client.h"

namespace verger::grpc {

/// One call as its client sees it, on the executor of its connection. Messages go both ways,
/// independently; the call ends with a status, and until it has, it is cancelled with this object.
///
/// Errors of all waits are those of http::Http2Request, and kCorruption: what came is no message of
/// the type. They end the call without a status.
class ClientCall {
 public:
  /// `method`: with package and service, "event_store.client.gossip.Gossip/Read".
  ClientCall(http::Http2Client& connection, const std::string& method, http::Headers metadata = {},
             std::size_t most_bytes = kMostResponseBytes);
  ~ClientCall();
  ClientCall(const ClientCall&) = delete;
  ClientCall& operator=(const ClientCall&) = delete;

  net::awaitable<Result<void>> send(std::string message);
  /// No more messages are sent.
  void half_close() { request_->end(); }
  /// Waits for the head of the answer. False: the call has ended instead, see status().
  net::awaitable<Result<bool>> begun();
  /// The next message; nullopt: the call has ended, see status().
  net::awaitable<Result<std::optional<std::string>>> read();
  /// The same as `Message`.
  template <class Message>
  net::awaitable<Result<std::optional<Message>>> next();

  /// How the call ended, with its trailers as metadata. An answer that is none of gRPC has its
  /// status of HTTP in `http_status` and its text in `message`.
  [[nodiscard]] const Status& status() const { return status_; }
  /// The one limit for all waits from now on.
  void expires_after(std::chrono::milliseconds limit) { request_->expires_after(limit); }
  void never_expires() { request_->never_expires(); }
  void cancel() { request_->cancel(); }

  static constexpr std::size_t kMostResponseBytes = std::size_t{17} << 20U;

 private:
  net::awaitable<Result<void>> take_head();
  void take_status(const http::Headers& fields);

  std::shared_ptr<http::Http2Request> request_;
  MessageReader messages_;
  bool has_head_ = false;
  bool ended_ = false;
  Status status_;
};

template <class Message>
net::awaitable<Result<std::optional<Message>>> ClientCall::next() {
  auto bytes = co_await read();
  if (!bytes) {
    co_return bytes.error();
  }
  if (!*bytes) {
    co_return std::optional<Message>();
  }
  std::optional<Message> message(std::in_place);
  if (!message->ParseFromString(**bytes)) {
    cancel();
    co_return Error{Errc::kCorruption, "the answer is no message of the expected type"};
  }
  co_return message;
}

}  // namespace verger::grpc
