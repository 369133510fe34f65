#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nodeagent/http/http2.h"
#include "nodeagent/http/notifier.h"

namespace verger::testing {

/// One request of HTTP/2 without a connection: what a client sends is put in, what it gets is kept.
class MemoryExchange final : public http::Http2Exchange {
 public:
  MemoryExchange(const net::any_io_executor& executor, http::Request head)
      : head_(std::move(head)), arrived_(executor) {}

  // --- The client's side ---
  void put(std::string bytes) {
    pieces_.push_back(std::move(bytes));
    arrived_.notify();
  }
  void half_close() {
    half_closed_ = true;
    arrived_.notify();
  }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] int status() const { return status_; }
  /// Head and trailers.
  [[nodiscard]] const std::map<std::string, std::string>& fields() const { return fields_; }
  /// Head, messages and end came in one.
  [[nodiscard]] bool trailers_only() const { return trailers_only_; }
  /// The messages so far, without their prefixes.
  [[nodiscard]] std::vector<std::string> messages() const;
  [[nodiscard]] const std::string& body() const { return body_; }

  // --- The server's ---
  [[nodiscard]] const http::Request& head() const override { return head_; }
  net::awaitable<Result<std::string>> read() override;
  void send_head(int status, const http::Headers& headers, bool end) override;
  net::awaitable<Result<void>> write(std::string bytes) override;
  void end(const http::Headers& trailers) override;
  [[nodiscard]] bool cancelled() const override { return cancelled_; }
  void cancel() override;

 private:
  void keep(const http::Headers& headers);

  http::Request head_;
  http::Notifier arrived_;
  std::deque<std::string> pieces_;
  std::string body_;
  std::map<std::string, std::string> fields_;
  int status_ = 0;
  bool half_closed_ = false;
  bool trailers_only_ = false;
  bool ended_ = false;
  bool cancelled_ = false;
};

}  // namespace verger::testing
