#include "nodeagent/grpc/service_table.h"

#include <algorithm>
#include <fmt/format.h>

#include <boost/system/system_error.hpp>

namespace verger::grpc {
namespace {

constexpr std::string_view kContentType = "application/grpc";
/// How often deadlines are looked at, at least, while there are any.
constexpr std::chrono::milliseconds kDeadlineTick{10};

bool is_grpc(std::string_view content_type) {
  return content_type.starts_with(kContentType) &&
         (content_type.size() == kContentType.size() || content_type[kContentType.size()] == '+' ||
          content_type[kContentType.size()] == ';');
}

Encoding encoding_of(const http::Request& head) {
  const auto name = head.headers.get("grpc-encoding").value_or("identity");
  return name == "gzip"      ? Encoding::kGzip
         : name == "deflate" ? Encoding::kDeflate
                             : Encoding::kNone;
}

}  // namespace

ServiceTable::ServiceTable(TableEnvironment environment) : env_(std::move(environment)) {}

void ServiceTable::add(const std::string& service, const std::string& method, MethodHandler handler,
                       std::size_t most_bytes) {
  by_path_["/" + service + "/" + method] = {std::move(handler), most_bytes};
  methods_.emplace_back(service, method);
}

bool ServiceTable::takes(const http::Request& head) const {
  return head.method == "POST" &&
         (by_path_.contains(head.target) || is_grpc(head.headers.get("content-type").value_or("")));
}

std::expected<const ServiceTable::Method*, ServiceTable::Refusal> ServiceTable::find(
    const http::Request& head) const {
  const auto unimplemented = [](std::string text) {
    return std::unexpected(
        Refusal{.status = {.code = Code::kUnimplemented, .message = std::move(text)}});
  };
  const auto found = by_path_.find(head.target);
  if (found == by_path_.end()) {
    const auto slash = head.target.rfind('/');
    const auto service = std::string_view(head.target).substr(0, slash + 1);
    const auto known = by_path_.lower_bound(service);
    return unimplemented(known != by_path_.end() && known->first.starts_with(service)
                             ? "Method is unimplemented."
                             : "Service is unimplemented.");
  }
  const auto content_type = head.headers.get("content-type").value_or("");
  if (!is_grpc(content_type)) {
    return std::unexpected(Refusal{
        .status = {.code = Code::kInternal,
                   .message = fmt::format("Content-Type '{}' is not supported.", content_type)},
        .http_status = 415});
  }
  const auto encoding = head.headers.get("grpc-encoding").value_or("identity");
  if (encoding != "identity" && encoding != "gzip" && encoding != "deflate") {
    return std::unexpected(
        Refusal{.status = {.code = Code::kUnimplemented,
                           .message = fmt::format("Unsupported grpc-encoding value '{}'. Supported "
                                                  "encodings: identity, gzip, deflate",
                                                  encoding)},
                .headers = {{"grpc-accept-encoding", "identity,gzip,deflate"}}});
  }
  return &found->second;
}

net::awaitable<void> ServiceTable::serve(std::shared_ptr<ServiceTable> table,
                                         std::shared_ptr<http::Http2Exchange> exchange) {
  const auto method = table->find(exchange->head());
  if (!method) {
    auto [status, http_status, headers] = method.error();
    if (http_status == 200) {
      headers.set("content-type", std::string(kContentType));
    }
    headers.set("content-length", "0");
    headers.set("grpc-status", std::to_string(static_cast<int>(status.code)));
    headers.set("grpc-message", encode_message(status.message));
    exchange->send_head(http_status, headers, true);
    co_return;
  }
  const auto call =
      std::make_shared<ServerCall>(exchange, (*method)->most_bytes, encoding_of(exchange->head()));
  if (const auto timeout =
          parse_timeout(exchange->head().headers.get("grpc-timeout").value_or(""))) {
    table->expect_by(table->env_.clock.monotonic() + *timeout, call);
  }
  Status status;
  try {
    status = co_await (*method)->handler(call);
  } catch (const boost::system::system_error& error) {
    if (error.code() == net::error::operation_aborted) {
      throw;
    }
    table->env_.log.error("a call's handler failed",
                          {{"call", exchange->head().target}, {"error", error.what()}});
    status = handler_failed();
  } catch (const std::exception& error) {
    table->env_.log.error("a call's handler failed",
                          {{"call", exchange->head().target}, {"error", error.what()}});
    status = handler_failed();
  }
  call->finish(status);
}

void ServiceTable::expect_by(Monotonic deadline, std::weak_ptr<ServerCall> call) {
  deadlines_.emplace(deadline, std::move(call));
  if (!watching_deadlines_) {
    watching_deadlines_ = true;
    env_.spawn(end_late_calls(shared_from_this()));
  }
}

net::awaitable<void> ServiceTable::end_late_calls(std::shared_ptr<ServiceTable> table) {
  auto& deadlines = table->deadlines_;
  while (true) {
    while (!deadlines.empty() && (deadlines.begin()->first <= table->env_.clock.monotonic() ||
                                  deadlines.begin()->second.expired())) {
      const auto call = deadlines.begin()->second.lock();
      deadlines.erase(deadlines.begin());
      if (call != nullptr) {
        call->abort({.code = Code::kDeadlineExceeded, .message = "Deadline Exceeded"});
      }
    }
    // Of calls that have ended long before their deadlines nothing is kept.
    std::erase_if(deadlines, [](const auto& entry) { return entry.second.expired(); });
    if (deadlines.empty()) {
      table->watching_deadlines_ = false;
      co_return;
    }
    const auto next = deadlines.begin()->first - table->env_.clock.monotonic();
    co_await table->env_.timers.sleep_for(
        std::min(kDeadlineTick, std::chrono::ceil<std::chrono::milliseconds>(next)));
  }
}

}  // namespace verger::grpc
