#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/result.h"
#include "nodeagent/http/detail/http2_fields.h"
#include "nodeagent/http/detail/outgoing_data.h"
#include "nodeagent/http/http2.h"
#include "nodeagent/http/notifier.h"

namespace verger::http {

/// What a stream needs of its connection.
class Http2Session {
 public:
  Http2Session() = default;
  virtual ~Http2Session() = default;
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  [[nodiscard]] virtual nghttp2_session* session() const = 0;
  /// There is something to send.
  virtual void wake() = 0;
};

/// One request of a connection and its answer: what has arrived and was not read, what was written
/// and is not sent. The handler uses the exchange, the connection the members below it, on one
/// executor.
class Http2Stream final : public Http2Exchange {
 public:
  Http2Stream(std::shared_ptr<Http2Session> connection, std::int32_t id,
              const net::any_io_executor& executor, const Peer& peer)
      : connection_(std::move(connection)), id_(id), arrived_(executor), room_(executor) {
    head_.method.clear();
    head_.target.clear();
    head_.peer = peer;
  }

  [[nodiscard]] const Request& head() const override { return head_; }
  net::awaitable<Result<std::string>> read() override;
  void send_head(int status, const Headers& headers, bool end) override;
  net::awaitable<Result<void>> write(std::string bytes) override;
  void end(const Headers& trailers) override;
  [[nodiscard]] bool cancelled() const override { return cancelled_; }
  void cancel() override;

  // --- For the connection ---
  void take_header(std::string_view name, std::string_view value);
  [[nodiscard]] std::size_t header_bytes() const { return header_bytes_; }
  /// False: the handler is behind; the client has to wait.
  bool take_data(std::string_view bytes);
  void take_end();
  /// The stream is over, one way or another.
  void close();
  /// The handler has returned: an answer that is not whole becomes a reset.
  void handler_ended();
  /// The next bytes of the answer for nghttp2, which sets `flags` as its read callback does.
  std::ptrdiff_t give_data(std::uint8_t* into, std::size_t size, std::uint32_t& flags);

 private:
  std::shared_ptr<Http2Session> connection_;
  std::int32_t id_;
  Request head_;
  std::size_t header_bytes_ = 0;
  std::string in_;
  std::size_t unconsumed_ = 0;
  bool in_ended_ = false;
  Notifier arrived_;
  OutgoingData out_;
  bool head_sent_ = false;
  bool ended_ = false;
  Http2Fields trailers_;
  Notifier room_;
  bool closed_ = false;
  bool cancelled_ = false;
};

}  // namespace verger::http
