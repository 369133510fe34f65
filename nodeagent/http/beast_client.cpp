#include "nodeagent/http/beast_client.h"

#include <atomic>
#include <fmt/format.h>
#include <map>
#include <variant>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nodeagent/http/detail/tls_transport.h"
#include "nodeagent/http/detail/wire.h"
#include "nodeagent/http/loopback.h"

namespace verger::http {

std::shared_ptr<void> KeptConnections::take() {
  if (free_.fetch_sub(1) <= 0) {
    ++free_;
    return nullptr;
  }
  struct Place {
    std::shared_ptr<KeptConnections> of;
    explicit Place(std::shared_ptr<KeptConnections> all) : of(std::move(all)) {}
    ~Place() { ++of->free_; }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
  };
  return std::make_shared<Place>(shared_from_this());
}

struct BeastClient::Impl {
  struct Pooled {
    std::shared_ptr<Transport> transport;
    Monotonic made{};
    Monotonic used{};
    std::shared_ptr<void> place{};  ///< among the kept ones; null: it has none
  };

  net::any_io_executor strand;
  BeastClientOptions options;
  Clock& clock;
  std::map<Endpoint, std::vector<Pooled>> idle;
  std::atomic<std::size_t> made = 0;
  std::atomic<std::size_t> sent = 0;
  std::atomic<std::size_t> repeated = 0;
  std::atomic<bool> any_idle = false;  ///< of any endpoint

  Impl(const net::any_io_executor& executor, BeastClientOptions with, Clock& time)
      : strand(net::make_strand(executor)), options(std::move(with)), clock(time) {}

  void close_unusable(std::vector<Pooled>& pool) {
    const auto now = clock.monotonic();
    std::erase_if(pool, [&](Pooled& pooled) {
      const auto unused =
          pooled.place == nullptr ? options.idle_lifetime : options.kept->idle_lifetime();
      const bool usable = now - pooled.made < options.connection_lifetime &&
                          now - pooled.used < unused && pooled.transport->quiet();
      if (!usable) {
        pooled.transport->close();
      }
      return !usable;
    });
  }

  void close_unused() {
    for (auto at = idle.begin(); at != idle.end();) {
      close_unusable(at->second);
      at = at->second.empty() ? idle.erase(at) : std::next(at);
    }
    any_idle = !idle.empty();
  }

  /// The newest usable connection; unusable ones are closed on the way.
  std::optional<Pooled> take(const Endpoint& to) {
    auto& pool = idle[to];
    std::optional<Pooled> found;
    close_unusable(pool);
    if (!pool.empty()) {
      found = std::move(pool.back());
      pool.pop_back();
    }
    return found;
  }

  void give_back(const Endpoint& to, Pooled pooled) {
    auto& pool = idle[to];
    pooled.used = clock.monotonic();
    pooled.transport->never_expires();
    if (pooled.place == nullptr && options.kept != nullptr) {
      pooled.place = options.kept->take();
    }
    any_idle = true;
    if (pool.size() >= options.idle_per_endpoint) {
      pool.front().transport->close();
      pool.erase(pool.begin());
    }
    pool.push_back(std::move(pooled));
  }

  void close_all() {
    for (auto& [endpoint, pool] : idle) {
      for (auto& pooled : pool) {
        pooled.transport->close();
      }
    }
    idle.clear();
  }

  static net::awaitable<Result<Response>> send(std::shared_ptr<Impl> self, Endpoint to,
                                               Request request,
                                               std::chrono::steady_clock::time_point limit);
};

net::awaitable<Result<Response>> BeastClient::Impl::send(
    std::shared_ptr<Impl> self, Endpoint to, Request request,
    std::chrono::steady_clock::time_point limit) {
  const auto what = fmt::format("{} {}{}", request.method, to.url(),
                                request.target.substr(0, request.target.find('?')));
  const auto bytes = request_bytes(to, request);
  const bool head = request.method == "HEAD";
  const bool harmless = head || request.method == "GET";
  bool may_repeat = true;
  while (true) {
    auto pooled = may_repeat ? self->take(to) : std::nullopt;
    const bool reused = pooled.has_value();
    if (!reused) {
      auto socket = co_await connect_tcp(self->strand, to, limit);
      if (!socket.has_value()) {
        co_return socket.error().within(request.method + " " + request.target);
      }
      std::shared_ptr<Transport> fresh;
      if (to.tls) {
        auto secured =
            co_await connect_tls(std::move(*socket), self->options.tls, to, limit,
                                 self->options.accept_peer, self->options.unknown_issuer_advice);
        if (!secured.has_value()) {
          co_return secured.error().within(request.method + " " + request.target);
        }
        fresh = std::move(*secured);
      } else {
        fresh = make_plain_transport(std::move(*socket));
      }
      ++self->made;
      pooled = Pooled{.transport = std::move(fresh), .made = self->clock.monotonic()};
    }
    // However this coroutine ends, a connection that is not given back is closed.
    struct Closer {
      std::shared_ptr<Transport> transport;
      ~Closer() {
        if (transport != nullptr) {
          transport->close();
        }
      }
    } closer{pooled->transport};
    const auto& transport = pooled->transport;
    transport->expires_at(limit);
    ++self->sent;
    const auto written = co_await transport->write(net::buffer(bytes));
    if (written.error) {
      if (reused && !written.timed_out && (written.bytes == 0 || harmless)) {
        may_repeat = false;
        ++self->repeated;
        continue;
      }
      if (written.bytes == 0) {
        co_return Error{Errc::kUnavailable,
                        fmt::format("{}: nothing was sent: {}", what, written.text())};
      }
      co_return Error{Errc::kUnknownOutcome,
                      fmt::format("{}: sent in part, then: {}", what, written.text())};
    }
    auto read = co_await read_response(transport, head, self->options.response_bytes);
    if (auto* failure = std::get_if<ResponseFailure>(&read)) {
      const bool late = std::chrono::steady_clock::now() >= limit;
      if (reused && harmless && !failure->any_byte && !late) {
        may_repeat = false;
        ++self->repeated;
        continue;
      }
      if (harmless) {
        co_return Error{
            Errc::kUnknownOutcome,
            fmt::format("{}: no whole answer came: {}{}", what, failure->text,
                        to.tls || failure->any_byte || late ? "" : "; is it https there?")};
      }
      co_return Error{Errc::kUnknownOutcome,
                      fmt::format("{}: sent, but no whole answer came: {}; it may have been "
                                  "carried out",
                                  what, failure->text)};
    }
    auto& [response, keep_alive] = std::get<ReadResponse>(read);
    if (keep_alive) {
      closer.transport.reset();
      self->give_back(to, std::move(*pooled));
    }
    co_return std::move(response);
  }
}

BeastClient::BeastClient(net::any_io_executor executor, BeastClientOptions options, Clock& clock)
    : impl_(std::make_shared<Impl>(executor, std::move(options), clock)) {}

BeastClient::~BeastClient() { impl_->close_all(); }

net::awaitable<Result<Response>> BeastClient::send(Endpoint to, Request request,
                                                   std::chrono::milliseconds deadline) {
  const auto limit = std::chrono::steady_clock::now() + deadline;
  if (to.tls && impl_->options.tls == nullptr) {
    co_return Error{Errc::kUnavailable,
                    fmt::format("{}: no request sent: trusted roots for https are not configured{}",
                                to.url(), impl_->options.roots_advice)};
  }
  if (!to.tls && impl_->options.plain_to_loopback_only && !is_loopback(to.host)) {
    co_return Error{Errc::kUnavailable,
                    fmt::format("{}: no request sent: plain HTTP is for loopback addresses only; "
                                "use https",
                                to.url())};
  }
  add_default_accept(request);
  const auto impl = impl_;
  co_return co_await net::co_spawn(
      impl->strand, Impl::send(impl, std::move(to), std::move(request), limit), net::use_awaitable);
}

void BeastClient::drop_connections() {
  net::dispatch(impl_->strand, [impl = impl_] { impl->close_all(); });
}

void BeastClient::close_unused() {
  if (!impl_->any_idle) {
    return;
  }
  net::dispatch(impl_->strand, [impl = impl_] { impl->close_unused(); });
}

BeastClient::Counts BeastClient::counts() const {
  return Counts{
      .connections_made = impl_->made, .requests_sent = impl_->sent, .repeated = impl_->repeated};
}

void add_default_accept(Request& request) {
  const auto path = std::string_view(request.target).substr(0, request.target.find('?'));
  if (!request.headers.get("Accept").has_value() && path != "/metrics") {
    request.headers.set("Accept", "application/json");
  }
}

}  // namespace verger::http
