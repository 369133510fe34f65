#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "engine/base/clock.h"
#include "nodeagent/grpc/server_call.h"
#include "nodeagent/http/http2.h"
#include "nodeagent/http/timers.h"

namespace verger::grpc {

/// Answers one call: what it returns ends it. An exception is the status of a handler that failed.
using MethodHandler = std::function<net::awaitable<Status>(std::shared_ptr<ServerCall>)>;

/// Where the calls' deadlines come from. References must outlive the table and its calls.
struct TableEnvironment {
  Clock& clock;
  http::Timers& timers;
  Log& log;
  /// Starts the coroutine that ends calls at their deadlines.
  std::function<void(net::awaitable<void>)> spawn;
};

inline constexpr std::size_t kMostMessageBytes = std::size_t{4} << 20U;

/// The methods of all services, by path. Filled before use; everything on one executor.
class ServiceTable : public std::enable_shared_from_this<ServiceTable> {
 public:
  explicit ServiceTable(TableEnvironment environment);

  /// `service`: with its package, "event_store.client.gossip.Gossip".
  void add(const std::string& service, const std::string& method, MethodHandler handler,
           std::size_t most_bytes = kMostMessageBytes);
  /// Service and method, in the order in which they were added.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& methods() const {
    return methods_;
  }

  /// Whether a request is a call, or was meant to be one.
  [[nodiscard]] bool takes(const http::Request& head) const;
  static net::awaitable<void> serve(std::shared_ptr<ServiceTable> table,
                                    std::shared_ptr<http::Http2Exchange> exchange);

 private:
  struct Method {
    MethodHandler handler;
    std::size_t most_bytes;
  };
  /// What ends a call before its handler sees it.
  struct Refusal {
    Status status;
    int http_status = 200;
    http::Headers headers{};
  };
  [[nodiscard]] std::expected<const Method*, Refusal> find(const http::Request& head) const;
  void expect_by(Monotonic deadline, std::weak_ptr<ServerCall> call);
  static net::awaitable<void> end_late_calls(std::shared_ptr<ServiceTable> table);

  TableEnvironment env_;
  std::map<std::string, Method, std::less<>> by_path_;
  std::vector<std::pair<std::string, std::string>> methods_;
  std::multimap<Monotonic, std::weak_ptr<ServerCall>> deadlines_;
  bool watching_deadlines_ = false;
};

}  // namespace verger::grpc
