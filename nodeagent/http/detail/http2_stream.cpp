#include "nodeagent/http/detail/http2_stream.h"

#include <nghttp2/nghttp2.h>

namespace verger::http {
namespace {

/// What a handler may be ahead of its client; and a client of the handler.
constexpr std::size_t kHttp2Ahead = 256UZ * 1024;

Error no_client() { return Error{Errc::kCancelled, "the client no longer waits for an answer"}; }

}  // namespace

net::awaitable<Result<std::string>> Http2Stream::read() {
  while (in_.empty() && !in_ended_ && !cancelled_) {
    co_await arrived_.wait();
  }
  if (cancelled_) {
    co_return no_client();
  }
  if (unconsumed_ > 0 && !closed_) {
    nghttp2_session_consume_stream(connection_->session(), id_, unconsumed_);
    unconsumed_ = 0;
    connection_->wake();
  }
  co_return std::exchange(in_, {});
}

void Http2Stream::send_head(int status, const Headers& headers, bool end) {
  if (closed_ || head_sent_) {
    return;
  }
  head_sent_ = true;
  ended_ = end;
  auto fields = http2_fields(headers);
  fields.insert(fields.begin(), {":status", std::to_string(status)});
  const auto list = name_values(fields);
  const nghttp2_data_provider body{
      .source = {.ptr = this},
      .read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* into, std::size_t size,
                          std::uint32_t* flags, nghttp2_data_source* source, void*) {
        return static_cast<Http2Stream*>(source->ptr)->give_data(into, size, *flags);
      }};
  nghttp2_submit_response(connection_->session(), id_, list.data(), list.size(),
                          end ? nullptr : &body);
  connection_->wake();
}

net::awaitable<Result<void>> Http2Stream::write(std::string bytes) {
  while (out_.size() > kHttp2Ahead && !cancelled_) {
    co_await room_.wait();
  }
  if (cancelled_ || ended_) {
    co_return no_client();
  }
  out_.append(bytes);
  nghttp2_session_resume_data(connection_->session(), id_);
  connection_->wake();
  co_return Result<void>{};
}

void Http2Stream::end(const Headers& trailers) {
  if (closed_ || ended_ || !head_sent_) {
    return;
  }
  ended_ = true;
  trailers_ = http2_fields(trailers);
  nghttp2_session_resume_data(connection_->session(), id_);
  connection_->wake();
}

void Http2Stream::cancel() {
  if (cancelled_) {
    return;
  }
  cancelled_ = true;
  arrived_.notify();
  room_.notify();
  if (on_cancel) {
    on_cancel();
  }
}

void Http2Stream::take_header(std::string_view name, std::string_view value) {
  constexpr std::size_t kFieldOverhead = 32;  // as RFC 9113 counts
  header_bytes_ += name.size() + value.size() + kFieldOverhead;
  if (name == ":method") {
    head_.method = value;
  } else if (name == ":path") {
    head_.target = value;
  } else if (name == ":authority") {
    head_.headers.set("host", std::string(value));
  } else if (!name.starts_with(':')) {
    head_.headers.add(name, std::string(value));
  }
}

bool Http2Stream::take_data(std::string_view bytes) {
  in_ += bytes;
  arrived_.notify();
  if (in_.size() > kHttp2Ahead) {
    unconsumed_ += bytes.size();
    return false;
  }
  return true;
}

void Http2Stream::take_end() {
  in_ended_ = true;
  arrived_.notify();
}

void Http2Stream::close() {
  closed_ = true;
  const bool whole = ended_ && out_.empty();
  if (!whole || !in_ended_) {
    cancel();
  }
}

void Http2Stream::handler_ended() {
  if (!ended_ && !closed_) {
    nghttp2_submit_rst_stream(connection_->session(), NGHTTP2_FLAG_NONE, id_,
                              NGHTTP2_INTERNAL_ERROR);
    connection_->wake();
  }
}

std::ptrdiff_t Http2Stream::give_data(std::uint8_t* into, std::size_t size, std::uint32_t& flags) {
  const auto count = out_.take(into, size);
  if (out_.empty()) {
    if (ended_) {
      flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!trailers_.empty()) {
        flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        const auto list = name_values(trailers_);
        nghttp2_submit_trailer(connection_->session(), id_, list.data(), list.size());
      }
    } else if (count == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
  }
  room_.notify();
  return static_cast<std::ptrdiff_t>(count);
}

}  // namespace verger::http
