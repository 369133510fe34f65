#include "nodeagent/http/http2_client.h"

#include <algorithm>
#include <array>
#include <map>
#include <nghttp2/nghttp2.h>

#include "engine/base/deleter.h"
#include "nodeagent/http/detail/client_request.h"
#include "nodeagent/http/detail/http2_fields.h"
#include "nodeagent/http/detail/tls_transport.h"
#include "nodeagent/http/detail/transport.h"
#include "nodeagent/http/notifier.h"
#include "nodeagent/http/task_group.h"

namespace verger::http {
namespace {

constexpr std::size_t kClientReadSize = 64UZ * 1024;
/// What is gathered before it is written.
constexpr std::size_t kClientWriteSize = 64UZ * 1024;
constexpr std::int32_t kClientConnectionWindow = 1 << 20;

using detail::ClientRequest;

}  // namespace

class Http2Client::Impl final : public detail::ClientConnection,
                                public std::enable_shared_from_this<Impl> {
 public:
  Impl(net::any_io_executor executor, std::shared_ptr<Transport> transport, Endpoint to,
       Http2ClientOptions options, Timers& timers, Log& log)
      : executor_(std::move(executor)),
        transport_(std::move(transport)),
        to_(std::move(to)),
        options_(options),
        timers_(timers),
        wake_(executor_),
        own_(executor_, log, "http/2 client") {}

  Result<void> begin();
  void close();
  /// Nothing of it runs on.
  void end() {
    close();
    own_.cancel();
  }
  std::shared_ptr<Http2Request> start(const Request& request);
  [[nodiscard]] bool open() const {
    return !closed_ && nghttp2_session_check_request_allowed(session_.get()) != 0;
  }

  [[nodiscard]] nghttp2_session* session() const override { return session_.get(); }
  void wake() override { wake_.notify(); }
  [[nodiscard]] bool closed() const override { return closed_; }

 private:
  using Session = std::unique_ptr<nghttp2_session, Deleter<nghttp2_session_del>>;
  using Callbacks =
      std::unique_ptr<nghttp2_session_callbacks, Deleter<nghttp2_session_callbacks_del>>;
  using Option = std::unique_ptr<nghttp2_option, Deleter<nghttp2_option_del>>;

  static net::awaitable<void> read_all(std::shared_ptr<Impl> self);
  static net::awaitable<void> write_all(std::shared_ptr<Impl> self);
  static net::awaitable<void> keep_alive(std::shared_ptr<Impl> self);
  static Callbacks callbacks();
  std::shared_ptr<ClientRequest> find(std::int32_t id) const;
  int header_received(const nghttp2_frame& frame, std::string_view name, std::string_view value);
  void frame_received(const nghttp2_frame& frame);
  void data_received(std::int32_t id, std::string_view bytes);
  void stream_closed(std::int32_t id, std::uint32_t code);

  net::any_io_executor executor_;
  std::shared_ptr<Transport> transport_;
  Endpoint to_;
  Http2ClientOptions options_;
  Timers& timers_;
  Session session_;
  std::map<std::int32_t, std::shared_ptr<ClientRequest>> requests_;
  Notifier wake_;
  TaskGroup own_;
  std::uint64_t arrivals_ = 0;
  bool closed_ = false;
};

// --- The connection ---

Http2Client::Impl::Callbacks Http2Client::Impl::callbacks() {
  nghttp2_session_callbacks* raw = nullptr;
  if (nghttp2_session_callbacks_new(&raw) != 0) {
    throw std::bad_alloc();
  }
  Callbacks out(raw);
  nghttp2_session_callbacks_set_on_header_callback(
      raw, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
              std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
              std::uint8_t, void* self) {
        return static_cast<Impl*>(self)->header_received(
            *frame, {reinterpret_cast<const char*>(name), name_size},
            {reinterpret_cast<const char*>(value), value_size});
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      raw, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        static_cast<Impl*>(self)->frame_received(*frame);
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      raw, [](nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
              std::size_t size, void* self) {
        static_cast<Impl*>(self)->data_received(id, {reinterpret_cast<const char*>(data), size});
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      raw, [](nghttp2_session*, std::int32_t id, std::uint32_t code, void* self) {
        static_cast<Impl*>(self)->stream_closed(id, code);
        return 0;
      });
  return out;
}

Result<void> Http2Client::Impl::begin() {
  nghttp2_option* raw_option = nullptr;
  if (nghttp2_option_new(&raw_option) != 0) {
    throw std::bad_alloc();
  }
  const Option option(raw_option);
  nghttp2_option_set_no_auto_window_update(raw_option, 1);
  nghttp2_session* raw = nullptr;
  if (nghttp2_session_client_new2(&raw, callbacks().get(), this, raw_option) != 0) {
    throw std::bad_alloc();
  }
  session_.reset(raw);
  const std::array settings = {nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
  if (nghttp2_submit_settings(raw, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) != 0 ||
      nghttp2_session_set_local_window_size(raw, NGHTTP2_FLAG_NONE, 0, kClientConnectionWindow) !=
          0) {
    return Error{Errc::kUnavailable, fmt::format("{}: HTTP/2 cannot begin", to_.host)};
  }
  own_.spawn(read_all(shared_from_this()));
  own_.spawn(write_all(shared_from_this()));
  own_.spawn(keep_alive(shared_from_this()));
  return {};
}

void Http2Client::Impl::close() {
  if (closed_) {
    return;
  }
  closed_ = true;
  transport_->close();
  wake_.notify();
  for (const auto& [id, request] : std::exchange(requests_, {})) {
    request->fail(Error{Errc::kUnknownOutcome,
                        fmt::format("{}: the connection ended before the answer", to_.host)});
  }
}

std::shared_ptr<ClientRequest> Http2Client::Impl::find(std::int32_t id) const {
  const auto found = requests_.find(id);
  return found == requests_.end() ? nullptr : found->second;
}

std::shared_ptr<Http2Request> Http2Client::Impl::start(const Request& request) {
  const auto made = std::make_shared<ClientRequest>(weak_from_this(), executor_);
  if (!open()) {
    made->fail(Error{Errc::kUnavailable,
                     fmt::format("{}: the connection takes no more requests", to_.host)});
    return made;
  }
  auto fields = http2_fields(request.headers);
  const auto authority =
      to_.port == 0 ? std::string("localhost") : fmt::format("{}:{}", to_.host, to_.port);
  fields.insert(fields.begin(), {{":method", request.method},
                                 {":scheme", to_.tls ? "https" : "http"},
                                 {":path", request.target},
                                 {":authority", authority}});
  const auto list = name_values(fields);
  const nghttp2_data_provider body{
      .source = {.ptr = made.get()},
      .read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* into, std::size_t size,
                          std::uint32_t* flags, nghttp2_data_source* source, void*) {
        return static_cast<ClientRequest*>(source->ptr)->give_data(into, size, *flags);
      }};
  const auto id =
      nghttp2_submit_request(session_.get(), nullptr, list.data(), list.size(), &body, nullptr);
  if (id < 0) {
    made->fail(
        Error{Errc::kUnavailable, fmt::format("{}: not sent: {}", to_.host, nghttp2_strerror(id))});
    return made;
  }
  made->started(id);
  requests_[id] = made;
  wake();
  return made;
}

int Http2Client::Impl::header_received(const nghttp2_frame& frame, std::string_view name,
                                       std::string_view value) {
  const auto request = find(frame.hd.stream_id);
  return request == nullptr || request->take_header(name, value, options_.header_bytes)
             ? 0
             : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

void Http2Client::Impl::frame_received(const nghttp2_frame& frame) {
  const bool is_head = frame.hd.type == NGHTTP2_HEADERS;
  const auto request = find(frame.hd.stream_id);
  if (request == nullptr || (!is_head && frame.hd.type != NGHTTP2_DATA)) {
    return;
  }
  const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (is_head) {
    request->take_head(ends);
  }
  if (ends) {
    request->take_end();
    if (request->sends()) {
      // What would still come of the request is of no use to the other side.
      nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, frame.hd.stream_id,
                                NGHTTP2_NO_ERROR);
    }
  }
}

void Http2Client::Impl::data_received(std::int32_t id, std::string_view bytes) {
  // One slow reader must not hold up the others: the window of the connection opens at once.
  nghttp2_session_consume_connection(session_.get(), bytes.size());
  const auto request = find(id);
  if (request == nullptr || request->take_data(bytes)) {
    nghttp2_session_consume_stream(session_.get(), id, bytes.size());
  }
}

void Http2Client::Impl::stream_closed(std::int32_t id, std::uint32_t code) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) {
    return;
  }
  const auto request = found->second;
  requests_.erase(found);
  const bool refused = code == NGHTTP2_REFUSED_STREAM;
  request->fail(Error{refused ? Errc::kUnavailable : Errc::kUnknownOutcome,
                      fmt::format("{}: the request was {}: {}", to_.host,
                                  refused ? "not taken" : "reset", nghttp2_http2_strerror(code))});
}

net::awaitable<void> Http2Client::Impl::read_all(std::shared_ptr<Impl> self) {
  std::vector<std::uint8_t> buffer(kClientReadSize);
  while (!self->closed_) {
    const auto got = co_await self->transport_->read_some(net::buffer(buffer));
    if (got.error || self->closed_) {
      break;
    }
    ++self->arrivals_;
    if (nghttp2_session_mem_recv(self->session_.get(), buffer.data(), got.bytes) < 0) {
      break;
    }
    self->wake();
  }
  self->close();
}

net::awaitable<void> Http2Client::Impl::write_all(std::shared_ptr<Impl> self) {
  auto* session = self->session_.get();
  while (!self->closed_) {
    std::string out;
    while (out.size() < kClientWriteSize) {
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
      const auto sent = co_await self->transport_->write(net::buffer(out));
      if (sent.error) {
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

net::awaitable<void> Http2Client::Impl::keep_alive(std::shared_ptr<Impl> self) {
  while (!self->closed_) {
    auto seen = self->arrivals_;
    co_await self->timers_.sleep_for(self->options_.keep_alive_interval);
    if (self->closed_ || self->arrivals_ != seen || self->requests_.empty()) {
      continue;
    }
    nghttp2_submit_ping(self->session_.get(), NGHTTP2_FLAG_NONE, nullptr);
    self->wake();
    seen = self->arrivals_;
    co_await self->timers_.sleep_for(self->options_.keep_alive_timeout);
    if (self->arrivals_ == seen) {
      self->close();
    }
  }
}

// --- The client ---

Http2Client::Http2Client(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Http2Client::~Http2Client() { impl_->end(); }

net::awaitable<Result<std::unique_ptr<Http2Client>>> Http2Client::connect(
    net::any_io_executor executor, Endpoint to, std::shared_ptr<TlsContext> tls,
    Http2ClientOptions options, Timers& timers, Log& log) {
  const auto limit = std::chrono::steady_clock::now() + options.connect;
  VERGER_CO_TRY(auto socket, co_await connect_tcp(executor, to, limit));
  std::shared_ptr<Transport> transport;
  if (to.tls) {
    if (tls == nullptr) {
      co_return Error{Errc::kInvalidArgument, fmt::format("{}: needs TLS settings", to.url())};
    }
    VERGER_CO_TRY(transport, co_await connect_tls_http2(std::move(socket), tls, to, limit));
  } else {
    transport = make_plain_transport(std::move(socket));
  }
  transport->never_expires();
  auto impl = std::make_shared<Impl>(executor, std::move(transport), to, options, timers, log);
  VERGER_CO_RETURN_IF_ERROR(impl->begin());
  co_return std::unique_ptr<Http2Client>(new Http2Client(std::move(impl)));
}

Result<std::unique_ptr<Http2Client>> Http2Client::connect_local(
    const net::any_io_executor& executor, const std::string& path, Http2ClientOptions options,
    Timers& timers, Log& log) {
  VERGER_TRY(auto socket, connect_unix(executor, path));
  auto impl = std::make_shared<Impl>(executor, make_plain_transport(std::move(socket)),
                                     Endpoint{.host = path}, options, timers, log);
  VERGER_RETURN_IF_ERROR(impl->begin());
  return std::unique_ptr<Http2Client>(new Http2Client(std::move(impl)));
}

std::shared_ptr<Http2Request> Http2Client::start(const Request& request) {
  return impl_->start(request);
}

bool Http2Client::open() const { return impl_->open(); }

}  // namespace verger::http
