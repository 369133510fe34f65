#include "nodeagent/http/http2_client.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <nghttp2/nghttp2.h>
#include <optional>

#include <boost/asio/steady_timer.hpp>

#include "engine/base/deleter.h"
#include "engine/base/number_from_text.h"
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
/// What a request may be ahead of the connection, and the other side of who reads the answer.
constexpr std::size_t kClientAhead = 256UZ * 1024;
constexpr std::int32_t kClientConnectionWindow = 1 << 20;
constexpr int kFirstFinalStatus = 200;

class ClientRequest;

}  // namespace

class Http2Client::Impl final : public std::enable_shared_from_this<Impl> {
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

  // --- For its requests ---
  [[nodiscard]] nghttp2_session* session() const { return session_.get(); }
  /// There is something to send.
  void wake() { wake_.notify(); }
  [[nodiscard]] bool closed() const { return closed_; }

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

namespace {

class ClientRequest final : public Http2Request,
                            public std::enable_shared_from_this<ClientRequest> {
 public:
  ClientRequest(std::weak_ptr<Http2Client::Impl> connection, const net::any_io_executor& executor)
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

  std::weak_ptr<Http2Client::Impl> connection_;
  std::int32_t id_ = 0;
  std::optional<Error> failed_;
  Notifier changed_;
  Notifier room_;
  net::steady_timer deadline_;
  // The request.
  std::string out_;
  std::size_t out_begin_ = 0;  ///< what is before it has been sent
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

// --- One request ---

net::awaitable<Result<void>> ClientRequest::write(std::string bytes) {
  while (out_.size() - out_begin_ > kClientAhead && !failed_ && !in_ended_) {
    co_await room_.wait();
  }
  if (failed_) {
    co_return *failed_;
  }
  const auto connection = connection_.lock();
  if (out_ended_ || in_ended_ || connection == nullptr) {
    co_return Error{Errc::kCancelled, "the request has ended"};
  }
  out_.erase(0, out_begin_);
  out_begin_ = 0;
  out_ += bytes;
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
  const auto count = std::min(size, out_.size() - out_begin_);
  std::memcpy(into, out_.data() + out_begin_, count);
  out_begin_ += count;
  if (out_begin_ == out_.size() && out_ended_) {
    flags |= NGHTTP2_DATA_FLAG_EOF;
  } else if (count == 0) {
    return NGHTTP2_ERR_DEFERRED;
  }
  room_.notify();
  return static_cast<std::ptrdiff_t>(count);
}

}  // namespace

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
