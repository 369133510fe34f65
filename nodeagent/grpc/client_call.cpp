#include "nodeagent/grpc/client_call.h"

#include "engine/base/number_from_text.h"

namespace verger::grpc {
namespace {

/// Of an answer that is none of gRPC.
constexpr std::size_t kMostErrorText = 4096;
constexpr int kHttpOk = 200;

http::Request request_for(const std::string& method, http::Headers metadata) {
  http::Request request{.method = "POST", .target = "/" + method, .headers = std::move(metadata)};
  request.headers.set("content-type", "application/grpc");
  request.headers.set("te", "trailers");
  return request;
}

}  // namespace

ClientCall::ClientCall(http::Http2Client& connection, const std::string& method,
                       http::Headers metadata, std::size_t most_bytes)
    : request_(connection.start(request_for(method, std::move(metadata)))),
      messages_(most_bytes, Encoding::kNone) {}

ClientCall::~ClientCall() { request_->cancel(); }

net::awaitable<Result<void>> ClientCall::send(std::string message) {
  co_return co_await request_->write(framed(message));
}

void ClientCall::take_status(const http::Headers& fields) {
  ended_ = true;
  const auto code = number_from_text<int>(fields.get("grpc-status").value_or(""));
  constexpr int kGreatestCode = 16;
  status_.code =
      code && *code >= 0 && *code <= kGreatestCode ? static_cast<Code>(*code) : Code::kUnknown;
  status_.message = code ? decode_message(fields.get("grpc-message").value_or(""))
                         : "the call ended without a status";
  for (const auto& [name, value] : fields.all()) {
    if (name != "grpc-status" && name != "grpc-message" && name != "content-type" &&
        name != "content-length" && name != "date" && name != "server") {
      status_.metadata.emplace_back(name, decode_message(value));
    }
  }
}

net::awaitable<Result<void>> ClientCall::take_head() {
  if (has_head_) {
    co_return Result<void>{};
  }
  VERGER_CO_TRY(const auto head, co_await request_->head());
  has_head_ = true;
  if (head.status != kHttpOk) {
    ended_ = true;
    status_ = {.code = Code::kInternal, .http_status = head.status};
    while (status_.message.size() < kMostErrorText) {
      VERGER_CO_TRY(const auto piece, co_await request_->read());
      if (piece.empty()) {
        break;
      }
      status_.message += piece;
    }
    request_->cancel();
  } else if (head.end) {
    take_status(head.headers);
  }
  co_return Result<void>{};
}

net::awaitable<Result<bool>> ClientCall::begun() {
  VERGER_CO_RETURN_IF_ERROR(co_await take_head());
  co_return !ended_;
}

net::awaitable<Result<std::optional<std::string>>> ClientCall::read() {
  VERGER_CO_RETURN_IF_ERROR(co_await take_head());
  while (!ended_) {
    auto message = messages_.next();
    if (!message) {
      request_->cancel();
      co_return Error{Errc::kCorruption, std::move(message).error().message};
    }
    if (*message) {
      co_return *std::move(message);
    }
    VERGER_CO_TRY(const auto piece, co_await request_->read());
    if (piece.empty()) {
      take_status(request_->trailers());
    }
    messages_.add(piece);
  }
  co_return std::optional<std::string>();
}

}  // namespace verger::grpc
