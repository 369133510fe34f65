#include "nodeagent/http/http2.h"

#include <array>
#include <map>
#include <nghttp2/nghttp2.h>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

#include "engine/base/deleter.h"
#include "nodeagent/http/detail/http2_stream.h"
#include "nodeagent/http/notifier.h"
#include "nodeagent/http/task_group.h"

namespace verger::http {
namespace {

constexpr std::size_t kHttp2ReadSize = 64UZ * 1024;
/// What is gathered before it is written.
constexpr std::size_t kHttp2WriteSize = 64UZ * 1024;
/// Requests whose handlers may still run after their clients have reset them, per stream.
constexpr std::size_t kHandlersPerStream = 4;
/// How long handlers may run after their connection has ended.
constexpr std::chrono::milliseconds kHandlersAfterEnd{1'000};

class Http2Connection final : public Http2Session,
                              public std::enable_shared_from_this<Http2Connection> {
 public:
  Http2Connection(const net::any_io_executor& executor, std::shared_ptr<ByteStream> stream,
                  Http2Handler handler, Http2Options options, Timers& timers, Log& log)
      : executor_(executor),
        stream_(std::move(stream)),
        handler_(std::move(handler)),
        options_(options),
        timers_(timers),
        log_(log),
        wake_(executor),
        own_(executor, log, "http/2 connection"),
        handlers_(executor, log, "http/2 requests") {}

  bool open();
  static net::awaitable<void> serve(std::shared_ptr<Http2Connection> self);

  [[nodiscard]] nghttp2_session* session() const override { return session_.get(); }
  void wake() override { wake_.notify(); }

 private:
  using Session = std::unique_ptr<nghttp2_session, Deleter<nghttp2_session_del>>;
  using Callbacks =
      std::unique_ptr<nghttp2_session_callbacks, Deleter<nghttp2_session_callbacks_del>>;
  using Option = std::unique_ptr<nghttp2_option, Deleter<nghttp2_option_del>>;

  static net::awaitable<void> write_all(std::shared_ptr<Http2Connection> self);
  static net::awaitable<void> keep_alive(std::shared_ptr<Http2Connection> self);
  static net::awaitable<void> run(std::shared_ptr<Http2Connection> self,
                                  std::shared_ptr<Http2Stream> exchange);
  void begin(std::int32_t id);
  void start(std::int32_t id);
  Http2Stream* find(std::int32_t id) {
    const auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : found->second.get();
  }
  void close() {
    closed_ = true;
    stream_->close();
    wake_.notify();
  }
  void frame_received(const nghttp2_frame& frame);
  void frame_sent(const nghttp2_frame& frame);
  int header_received(std::int32_t id, std::string_view name, std::string_view value);
  void data_received(std::int32_t id, std::string_view bytes);
  void stream_closed(std::int32_t id);
  static Callbacks callbacks();

  net::any_io_executor executor_;
  std::shared_ptr<ByteStream> stream_;
  Http2Handler handler_;
  Http2Options options_;
  Timers& timers_;
  Log& log_;
  Session session_;
  std::map<std::int32_t, std::shared_ptr<Http2Stream>> streams_;
  Notifier wake_;
  TaskGroup own_;
  TaskGroup handlers_;
  std::uint64_t arrivals_ = 0;
  bool closed_ = false;
};

Http2Connection::Callbacks Http2Connection::callbacks() {
  nghttp2_session_callbacks* raw = nullptr;
  if (nghttp2_session_callbacks_new(&raw) != 0) {
    throw std::bad_alloc();
  }
  Callbacks out(raw);
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      raw, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
          static_cast<Http2Connection*>(self)->begin(frame->hd.stream_id);
        }
        return 0;
      });
  nghttp2_session_callbacks_set_on_header_callback(
      raw, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
              std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
              std::uint8_t, void* self) {
        if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
          return 0;  // trailers of a request mean nothing here
        }
        return static_cast<Http2Connection*>(self)->header_received(
            frame->hd.stream_id, {reinterpret_cast<const char*>(name), name_size},
            {reinterpret_cast<const char*>(value), value_size});
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      raw, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        static_cast<Http2Connection*>(self)->frame_received(*frame);
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_send_callback(
      raw, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        static_cast<Http2Connection*>(self)->frame_sent(*frame);
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      raw, [](nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
              std::size_t size, void* self) {
        static_cast<Http2Connection*>(self)->data_received(
            id, {reinterpret_cast<const char*>(data), size});
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      raw, [](nghttp2_session*, std::int32_t id, std::uint32_t, void* self) {
        static_cast<Http2Connection*>(self)->stream_closed(id);
        return 0;
      });
  return out;
}

bool Http2Connection::open() {
  nghttp2_option* raw_option = nullptr;
  if (nghttp2_option_new(&raw_option) != 0) {
    return false;
  }
  const Option option(raw_option);
  nghttp2_option_set_no_auto_window_update(raw_option, 1);
  nghttp2_session* raw = nullptr;
  if (nghttp2_session_server_new2(&raw, callbacks().get(), this, raw_option) != 0) {
    return false;
  }
  session_.reset(raw);
  const std::array settings = {
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options_.streams},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options_.stream_window},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, options_.header_bytes},
  };
  return nghttp2_submit_settings(raw, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0 &&
         nghttp2_session_set_local_window_size(raw, NGHTTP2_FLAG_NONE, 0,
                                               options_.connection_window) == 0;
}

void Http2Connection::begin(std::int32_t id) {
  streams_[id] = std::make_shared<Http2Stream>(shared_from_this(), id, executor_, stream_->peer());
}

int Http2Connection::header_received(std::int32_t id, std::string_view name,
                                     std::string_view value) {
  auto* exchange = find(id);
  if (exchange == nullptr) {
    return 0;
  }
  exchange->take_header(name, value);
  return exchange->header_bytes() > options_.header_bytes ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
                                                          : 0;
}

void Http2Connection::frame_received(const nghttp2_frame& frame) {
  const bool is_head = frame.hd.type == NGHTTP2_HEADERS;
  if (!is_head && frame.hd.type != NGHTTP2_DATA) {
    return;
  }
  auto* exchange = find(frame.hd.stream_id);
  if (exchange == nullptr) {
    return;
  }
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
    exchange->take_end();
  }
  if (is_head && frame.headers.cat == NGHTTP2_HCAT_REQUEST) {
    start(frame.hd.stream_id);
  }
}

void Http2Connection::start(std::int32_t id) {
  if (handlers_.size() >= kHandlersPerStream * options_.streams) {
    log_.warning("a connection was closed: its client resets requests faster than they end",
                 {{"peer", stream_->peer().address}});
    nghttp2_session_terminate_session(session_.get(), NGHTTP2_ENHANCE_YOUR_CALM);
    return;
  }
  handlers_.spawn(run(shared_from_this(), streams_.at(id)));
}

net::awaitable<void> Http2Connection::run(std::shared_ptr<Http2Connection> self,
                                          std::shared_ptr<Http2Stream> exchange) {
  std::string failed;
  try {
    co_await self->handler_(exchange);
  } catch (const boost::system::system_error& error) {
    if (error.code() != net::error::operation_aborted) {
      failed = error.what();
    }
  } catch (const std::exception& error) {
    failed = error.what();
  }
  if (!failed.empty()) {
    self->log_.error("a request's handler failed",
                     {{"request", exchange->head().target}, {"error", failed}});
  }
  exchange->on_cancel = {};
  exchange->handler_ended();
}

void Http2Connection::frame_sent(const nghttp2_frame& frame) {
  const bool ends = (frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA) &&
                    (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  // What the client would still send of its request is of no use to anything.
  if (ends && nghttp2_session_get_stream_remote_close(session_.get(), frame.hd.stream_id) == 0) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, frame.hd.stream_id,
                              NGHTTP2_NO_ERROR);
  }
}

void Http2Connection::data_received(std::int32_t id, std::string_view bytes) {
  // One slow handler must not hold up the others: the window of the connection opens at once.
  nghttp2_session_consume_connection(session_.get(), bytes.size());
  auto* exchange = find(id);
  if (exchange == nullptr || exchange->take_data(bytes)) {
    nghttp2_session_consume_stream(session_.get(), id, bytes.size());
  }
}

void Http2Connection::stream_closed(std::int32_t id) {
  const auto found = streams_.find(id);
  if (found != streams_.end()) {
    const auto exchange = found->second;
    streams_.erase(found);
    exchange->close();
  }
}

net::awaitable<void> Http2Connection::write_all(std::shared_ptr<Http2Connection> self) {
  auto* session = self->session_.get();
  while (!self->closed_) {
    std::string out;
    while (out.size() < kHttp2WriteSize) {
      const std::uint8_t* data = nullptr;
      const auto size = nghttp2_session_mem_send(session, &data);
      if (size < 0) {
        self->close();
        co_return;
      }
      if (size == 0) {
        break;
      }
      out.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
    }
    if (!out.empty()) {
      if (!co_await self->stream_->write(out)) {
        break;
      }
      continue;
    }
    if (nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0) {
      break;
    }
    co_await self->wake_.wait();
  }
  self->close();
}

net::awaitable<void> Http2Connection::keep_alive(std::shared_ptr<Http2Connection> self) {
  while (!self->closed_) {
    auto seen = self->arrivals_;
    co_await self->timers_.sleep_for(self->options_.keep_alive_interval);
    if (self->closed_ || self->arrivals_ != seen) {
      continue;
    }
    nghttp2_submit_ping(self->session_.get(), NGHTTP2_FLAG_NONE, nullptr);
    self->wake();
    seen = self->arrivals_;
    co_await self->timers_.sleep_for(self->options_.keep_alive_timeout);
    if (!self->closed_ && self->arrivals_ == seen) {
      self->log_.info("a connection was closed: its client does not answer",
                      {{"peer", self->stream_->peer().address}});
      self->close();
    }
  }
}

net::awaitable<void> Http2Connection::serve(std::shared_ptr<Http2Connection> self) {
  self->own_.spawn(write_all(self));
  self->own_.spawn(keep_alive(self));
  std::vector<std::uint8_t> buffer(kHttp2ReadSize);
  while (!self->closed_) {
    const auto size = co_await self->stream_->read_some(net::buffer(buffer));
    if (size == 0) {
      break;
    }
    ++self->arrivals_;
    const auto taken = nghttp2_session_mem_recv(self->session_.get(), buffer.data(), size);
    if (taken < 0) {
      self->log_.info("a connection was closed: not HTTP/2",
                      {{"peer", self->stream_->peer().address},
                       {"error", nghttp2_strerror(static_cast<int>(taken))}});
      break;
    }
    self->wake();
  }
  // A server that stops cancels this coroutine; the handlers end all the same before it does.
  co_await net::this_coro::reset_cancellation_state(net::disable_cancellation());
  self->close();
  for (const auto& [id, exchange] : std::exchange(self->streams_, {})) {
    exchange->close();
  }
  co_await self->handlers_.stop(kHandlersAfterEnd);
  co_await self->own_.stop(std::chrono::milliseconds(0));
}

}  // namespace

net::awaitable<void> serve_http2(std::shared_ptr<ByteStream> stream, Http2Handler handler,
                                 Http2Options options, Timers& timers, Log& log) {
  const auto executor = co_await net::this_coro::executor;
  const auto connection = std::make_shared<Http2Connection>(
      executor, std::move(stream), std::move(handler), options, timers, log);
  if (connection->open()) {
    co_await Http2Connection::serve(connection);
  }
}

}  // namespace verger::http
