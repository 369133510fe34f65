#include "nodeagent/http/detail/client_request.h"

#include <utility>

#include "engine/base/number_from_text.h"

namespace verger::http::detail {
namespace {

/// What a request may be ahead of the connection, and the other side of who reads the answer.
constexpr std::size_t kClientAhead = 256UZ * 1024;
constexpr int kFirstFinalStatus = 200;

}  // namespace

net::awaitable<Result<void>> ClientRequest::write(std::string bytes) {
  while (out_.size() > kClientAhead && !failed_ && !in_ended_) {
    co_await room_.wait();
  }
  if (failed_) {
    co_return *failed_;
  }
  const auto connection = connection_.lock();
  if (out_ended_ || in_ended_ || connection == nullptr) {
    co_return Error{Errc::kCancelled, "the request has ended"};
  }
  out_.append(bytes);
  nghttp2_session_resume_data(connection->session(), id_);
  connection->wake();
  co_return Result<void>{};
}

void ClientRequest::end() {
  const auto connection = connection_.lock();
  if (out_ended_ || failed_ || connection == nullptr) {
    return;
  }
  out_ended_ = true;
  nghttp2_session_resume_data(connection->session(), id_);
  connection->wake();
}

net::awaitable<Result<Http2Head>> ClientRequest::head() {
  const auto self = shared_from_this();
  while (!has_head_ && !failed_) {
    co_await changed_.wait();
  }
  if (!has_head_) {
    co_return *failed_;
  }
  co_return head_;
}

net::awaitable<Result<std::string>> ClientRequest::read() {
  const auto self = shared_from_this();
  while (in_.empty() && !in_ended_ && !failed_) {
    co_await changed_.wait();
  }
  if (in_.empty() && !in_ended_) {
    co_return *failed_;
  }
  if (const auto connection = connection_.lock(); connection != nullptr && unconsumed_ > 0) {
    nghttp2_session_consume_stream(connection->session(), id_, unconsumed_);
    unconsumed_ = 0;
    connection->wake();
  }
  co_return std::exchange(in_, {});
}

void ClientRequest::expires_after(std::chrono::milliseconds limit) {
  deadline_.expires_after(limit);
  deadline_.async_wait(
      [weak = weak_from_this(), expiry = deadline_.expiry()](boost::system::error_code error) {
        const auto self = weak.lock();
        // A handler that was already on its way when the limit was moved must not act.
        if (!error && self != nullptr && self->deadline_.expiry() == expiry) {
          self->stop(Error{Errc::kTimeout, "no answer in time"});
        }
      });
}

void ClientRequest::stop(Error error) {
  if (failed_ || in_ended_) {
    return;
  }
  if (const auto connection = connection_.lock();
      connection != nullptr && !connection->closed() && id_ > 0) {
    nghttp2_submit_rst_stream(connection->session(), NGHTTP2_FLAG_NONE, id_, NGHTTP2_CANCEL);
    connection->wake();
  }
  fail(std::move(error));
}

bool ClientRequest::take_header(std::string_view name, std::string_view value,
                                std::size_t most_bytes) {
  constexpr std::size_t kFieldOverhead = 32;  // as RFC 9113 counts
  header_bytes_ += name.size() + value.size() + kFieldOverhead;
  if (name == ":status") {
    head_.status = number_from_text<int>(value).value_or(0);
  } else if (!name.starts_with(':')) {
    (has_head_ ? trailers_ : head_.headers).add(name, std::string(value));
  }
  return header_bytes_ <= most_bytes;
}

void ClientRequest::take_head(bool end) {
  if (has_head_) {
    return;
  }
  if (head_.status < kFirstFinalStatus) {
    head_ = {};  // one that only announces another
    return;
  }
  has_head_ = true;
  head_.end = end;
  changed_.notify();
}

bool ClientRequest::take_data(std::string_view bytes) {
  in_ += bytes;
  changed_.notify();
  if (in_.size() > kClientAhead) {
    unconsumed_ += bytes.size();
    return false;
  }
  return true;
}

void ClientRequest::take_end() {
  in_ended_ = true;
  never_expires();
  changed_.notify();
  room_.notify();
}

void ClientRequest::fail(Error error) {
  if (failed_ || in_ended_) {
    return;
  }
  failed_ = std::move(error);
  never_expires();
  changed_.notify();
  room_.notify();
}

std::ptrdiff_t ClientRequest::give_data(std::uint8_t* into, std::size_t size,
                                        std::uint32_t& flags) {
  const auto count = out_.take(into, size);
  if (out_.empty() && out_ended_) {
    flags |= NGHTTP2_DATA_FLAG_EOF;
  } else if (count == 0) {
    return NGHTTP2_ERR_DEFERRED;
  }
  room_.notify();
  return static_cast<std::ptrdiff_t>(count);
}

}  // namespace verger::http::detail
