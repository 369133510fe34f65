#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nghttp2/nghttp2.h>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/steady_timer.hpp>

#include "nodeagent/http/detail/outgoing_data.h"
#include "nodeagent/http/http2_client.h"
#include "nodeagent/http/notifier.h"

namespace verger::http::detail {

/// What a request needs of the connection that it is on.
class ClientConnection {
 public:
  ClientConnection() = default;
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  [[nodiscard]] virtual nghttp2_session* session() const = 0;
  /// There is something to send.
  virtual void wake() = 0;
  [[nodiscard]] virtual bool closed() const = 0;

 protected:
  ~ClientConnection() = default;
};

/// One request of an Http2Client, and its answer: what both sides have ready for each other.
class ClientRequest final : public Http2Request,
                            public std::enable_shared_from_this<ClientRequest> {
 public:
  ClientRequest(std::weak_ptr<ClientConnection> connection, const net::any_io_executor& executor)
      : connection_(std::move(connection)),
        changed_(executor),
        room_(executor),
        deadline_(executor, std::chrono::steady_clock::time_point::max()) {}

  net::awaitable<Result<void>> write(std::string bytes) override;
  void end() override;
  net::awaitable<Result<Http2Head>> head() override;
  net::awaitable<Result<std::string>> read() override;
  [[nodiscard]] const Headers& trailers() const override { return trailers_; }
  void expires_after(std::chrono::milliseconds limit) override;
  void never_expires() override {
    deadline_.expires_at(std::chrono::steady_clock::time_point::max());
  }
  void cancel() override { stop(Error{Errc::kCancelled, "the request was cancelled"}); }

  // --- For the connection ---
  void started(std::int32_t id) { id_ = id; }
  bool take_header(std::string_view name, std::string_view value, std::size_t most_bytes);
  void take_head(bool end);
  /// False: who reads is behind, and the other side has to wait.
  bool take_data(std::string_view bytes);
  void take_end();
  [[nodiscard]] bool sends() const { return !out_ended_; }
  /// What comes from here on fails with it.
  void fail(Error error);
  std::ptrdiff_t give_data(std::uint8_t* into, std::size_t size, std::uint32_t& flags);

 private:
  /// Resets it and fails all waits.
  void stop(Error error);

  std::weak_ptr<ClientConnection> connection_;
  std::int32_t id_ = 0;
  std::optional<Error> failed_;
  Notifier changed_;
  Notifier room_;
  net::steady_timer deadline_;
  // The request.
  OutgoingData out_;
  bool out_ended_ = false;
  // The answer.
  Http2Head head_;
  bool has_head_ = false;
  std::string in_;
  std::size_t unconsumed_ = 0;
  bool in_ended_ = false;
  Headers trailers_;
  std::size_t header_bytes_ = 0;
};

}  // namespace verger::http::detail
