#include "nodeagent/grpc/server_call.h"

namespace verger::grpc {

Status client_gone() {
  return {.code = Code::kCancelled, .message = "Call canceled by the client."};
}

ServerCall::ServerCall(std::shared_ptr<http::Http2Exchange> exchange, std::size_t most_bytes,
                       Encoding encoding)
    : exchange_(std::move(exchange)), messages_(most_bytes, encoding) {}

net::awaitable<std::expected<std::optional<std::string>, Status>> ServerCall::read() {
  while (true) {
    auto message = messages_.next();
    if (!message || *message) {
      co_return message;
    }
    if (half_closed_) {
      if (messages_.has_rest()) {
        co_return std::unexpected(
            Status{.code = Code::kInternal, .message = "Incomplete message."});
      }
      co_return std::nullopt;
    }
    const auto piece = co_await exchange_->read();
    if (!piece) {
      co_return std::unexpected(client_gone());
    }
    half_closed_ = piece->empty();
    messages_.add(*piece);
  }
}

void ServerCall::send_head() {
  if (!any_sent_ && !cancelled()) {
    any_sent_ = true;
    exchange_->send_head(200, {{"content-type", "application/grpc"}}, false);
  }
}

net::awaitable<void> ServerCall::answer_as_http(int status, std::string content_type,
                                                std::string body) {
  if (finished_ || any_sent_) {
    co_return;
  }
  finished_ = true;
  exchange_->send_head(status, {{"content-type", std::move(content_type)}}, false);
  if (co_await exchange_->write(std::move(body))) {
    exchange_->end({});
  }
}

net::awaitable<bool> ServerCall::write(const google::protobuf::MessageLite& message) {
  if (cancelled()) {
    co_return false;
  }
  send_head();
  const auto written = co_await exchange_->write(framed(message.SerializeAsString()));
  co_return written.has_value();
}

void ServerCall::finish(const Status& status) {
  if (finished_) {
    return;
  }
  finished_ = true;
  if (status.http_status != 200) {
    exchange_->send_head(status.http_status, {{"content-length", "0"}}, true);
    return;
  }
  http::Headers fields;
  if (!any_sent_) {
    fields.set("content-type", "application/grpc");
    fields.set("content-length", "0");
  }
  for (const auto& [name, value] : status.metadata) {
    if (!value.empty()) {
      fields.set(name, encode_message(value));
    }
  }
  fields.set("grpc-status", std::to_string(static_cast<int>(status.code)));
  if (!status.message.empty()) {
    fields.set("grpc-message", encode_message(status.message));
  }
  if (any_sent_) {
    exchange_->end(fields);
  } else {
    exchange_->send_head(200, fields, true);
  }
}

void ServerCall::abort(const Status& status) {
  finish(status);
  exchange_->cancel();
}

}  // namespace verger::grpc
