#include "tests/integration/grpc_replay/recorded_exchange.h"

namespace verger::testing {

std::vector<std::string> MemoryExchange::messages() const {
  std::vector<std::string> out;
  for (std::string_view rest = body_; rest.size() >= 5;) {
    std::size_t size = 0;
    for (std::size_t i = 1; i < 5; ++i) {
      size = size << 8U | static_cast<unsigned char>(rest[i]);
    }
    out.emplace_back(rest.substr(5, size));
    rest.remove_prefix(std::min(rest.size(), 5 + size));
  }
  return out;
}

net::awaitable<Result<std::string>> MemoryExchange::read() {
  while (pieces_.empty() && !half_closed_ && !cancelled_) {
    co_await arrived_.wait();
  }
  if (cancelled_) {
    co_return Error{Errc::kCancelled, "cancelled"};
  }
  if (pieces_.empty()) {
    co_return std::string();
  }
  auto piece = std::move(pieces_.front());
  pieces_.pop_front();
  co_return piece;
}

void MemoryExchange::send_head(int status, const http::Headers& headers, bool end) {
  status_ = status;
  keep(headers);
  trailers_only_ = end;
  ended_ = end;
}

net::awaitable<Result<void>> MemoryExchange::write(std::string bytes) {
  if (cancelled_) {
    co_return Error{Errc::kCancelled, "cancelled"};
  }
  body_ += bytes;
  co_return Result<void>{};
}

void MemoryExchange::end(const http::Headers& trailers) {
  keep(trailers);
  ended_ = true;
}

void MemoryExchange::cancel() {
  cancelled_ = true;
  arrived_.notify();
  if (on_cancel) {
    on_cancel();
  }
}

void MemoryExchange::keep(const http::Headers& headers) {
  for (const auto& [name, value] : headers.all()) {
    fields_[name] = value;
  }
}

}  // namespace verger::testing
