#include "controller/cli/api_client.h"

#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <ostream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "controller/cli/json_text.h"
#include "engine/base/clock.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/http/tls.h"

namespace verger::cli {
namespace {

using nlohmann::json;

/// Which exit code a problem's stable code means (docs/operations/command-line.md).
int exit_code_of_problem(std::string_view code) {
  for (const std::string_view refused :
       {"cluster_exists", "wrong_cluster",     "plan_refused",   "stale_plan",
        "run_active",     "wrong_state",       "unauthorized",   "forbidden",
        "policy_invalid", "changed_meanwhile", "last_admin",     "token_unknown",
        "token_used",     "token_expired",     "cluster_paused", "other_controller",
        "standby",        "no_fencing",        "in_progress",    "idempotency_mismatch"}) {
    if (code == refused) {
      return kRefused;
    }
  }
  if (code == "unknown_outcome") {
    return kStillWaiting;
  }
  return code == "bad_request" ? kUsage : kFailed;
}

CallFailure failure_of(const http::Endpoint& controller, const http::Response& response) {
  CallFailure failure;
  failure.problem = json::parse(response.body, nullptr, false);
  if (!failure.problem.is_object() || !failure.problem.contains("detail")) {
    failure.problem = json::object();
    failure.message = fmt::format(
        "{}: the answer {} {} is none of vergerd's; is that its address? --controller or "
        "VERGER_CONTROLLER names another",
        controller.url(), response.status, http::standard_reason(response.status));
    return failure;
  }
  failure.message = failure.problem.value("detail", std::string());
  for (const auto& line : failure.problem.value("differences", json::array())) {
    if (line.is_string()) {
      failure.message += "\n  " + line.get<std::string>();
    }
  }
  failure.exit_code = exit_code_of_problem(failure.problem.value("code", std::string()));
  return failure;
}

/// Of a request that got no answer, or none that is whole.
CallFailure failure_of(const http::Endpoint& controller, const std::string& method,
                       const Error& error) {
  CallFailure failure;
  if (error.code != Errc::kUnknownOutcome) {
    failure.message = fmt::format(
        "{}: the controller cannot be reached ({}); is vergerd running? --controller or "
        "VERGER_CONTROLLER names another",
        controller.url(), error.message);
  } else if (method == "GET") {
    failure.message =
        fmt::format("{}: no whole answer ({}); does vergerd still run{}?", controller.url(),
                    error.message, controller.tls ? "" : ", and is it really plain http");
  } else {
    failure.exit_code = kStillWaiting;
    failure.message = fmt::format(
        "{}: no answer in time, so the request may or may not have been carried out; look before "
        "repeating it ({})",
        controller.url(), error.message);
  }
  return failure;
}

}  // namespace

struct ApiClient::State {
  State(http::Endpoint to, std::string secret, std::shared_ptr<http::TlsContext> tls)
      : controller(std::move(to)),
        token(std::move(secret)),
        client(context.get_executor(), {.tls = std::move(tls), .plain_to_loopback_only = true}) {}
  http::Endpoint controller;
  std::string token;
  boost::asio::io_context context{1};
  http::BeastClient client;
  bool answered = true;

  /// Runs one coroutine to its end on this thread.
  template <class T>
  T run(net::awaitable<T> work) {
    auto result = net::co_spawn(context, std::move(work), net::use_future);
    context.restart();
    context.run();
    return result.get();
  }
};

Result<std::string> token_of_environment() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
  if (const char* token = std::getenv("VERGER_TOKEN"); token != nullptr && *token != '\0') {
    return std::string(token);
  }
  const char* path = std::getenv("VERGER_TOKEN_FILE");  // NOLINT(concurrency-mt-unsafe): as above
  if (path == nullptr || *path == '\0') {
    return std::string();
  }
  std::ifstream file(path);
  std::string token;
  if (!std::getline(file, token) || token.empty()) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("VERGER_TOKEN_FILE is {}: it cannot be read, or its first line is empty",
                    path)};
  }
  return token;
}

ApiClient::ApiClient(http::Endpoint controller, std::string token,
                     std::shared_ptr<http::TlsContext> tls)
    : state_(std::make_unique<State>(std::move(controller), std::move(token), std::move(tls))) {}
ApiClient::~ApiClient() = default;

const http::Endpoint& ApiClient::controller() const { return state_->controller; }
bool ApiClient::answered() const { return state_->answered; }

std::expected<json, CallFailure> ApiClient::call(const std::string& method, const std::string& path,
                                                 const json* body, std::chrono::seconds deadline) {
  http::Request request;
  request.method = method;
  request.target = "/api/v1" + path;
  request.headers.set("Accept", "application/json");
  if (!state_->token.empty()) {
    request.headers.set("Authorization", "Bearer " + state_->token);
  }
  if (body != nullptr) {
    request.headers.set("Content-Type", "application/json");
    request.body = body->dump();
  }
  const auto response =
      state_->run(state_->client.send(state_->controller, std::move(request), deadline));
  state_->answered = response.has_value();
  if (!response) {
    return std::unexpected(failure_of(state_->controller, method, response.error()));
  }
  if (response->status >= 400) {
    return std::unexpected(failure_of(state_->controller, *response));
  }
  if (response->body.empty()) {
    return json();
  }
  auto parsed = json::parse(response->body, nullptr, false);
  if (parsed.is_discarded()) {
    CallFailure failure;
    failure.message =
        fmt::format("{}: the answer is not JSON; is that a vergerd?", state_->controller.url());
    return std::unexpected(std::move(failure));
  }
  return parsed;
}

std::expected<json, CallFailure> ApiClient::get(const std::string& path,
                                                std::chrono::seconds deadline) {
  return call("GET", path, nullptr, deadline);
}

std::expected<json, CallFailure> ApiClient::get_all(const std::string& path,
                                                    const std::string& member) {
  auto all = get(path);
  auto* page = all ? &*all : nullptr;
  std::expected<json, CallFailure> more;
  while (page != nullptr && page->is_object() && page->contains("next_cursor") &&
         (*page)["next_cursor"].is_string()) {
    const auto cursor = (*page)["next_cursor"].get<std::string>();
    more = get(path + (path.find('?') == std::string::npos ? "?" : "&") +
               "cursor=" + http::percent_encode(cursor));
    if (!more) {
      return more;
    }
    page = &*more;
    auto& items = (*all)[member];
    for (auto& item : (*page)[member]) {
      items.push_back(std::move(item));
    }
  }
  return all;
}

std::expected<json, CallFailure> ApiClient::post(const std::string& path, const json& body) {
  return call("POST", path, &body, std::chrono::seconds(120));
}

std::expected<json, CallFailure> ApiClient::put(const std::string& path, const json& body) {
  return call("PUT", path, &body, std::chrono::seconds(30));
}

std::expected<json, CallFailure> ApiClient::remove(const std::string& path) {
  return call("DELETE", path, nullptr, std::chrono::seconds(30));
}

void ApiClient::wait(std::chrono::milliseconds duration) {
  state_->run([](std::chrono::milliseconds time) -> net::awaitable<bool> {
    co_await http::system_timers().sleep_for(time);
    co_return true;
  }(duration));
}

int CliContext::show_secret(const nlohmann::json& answer, std::string_view about) const {
  if (json) {
    out << answer.dump() << '\n';
    return kDone;
  }
  err << about;
  out << text_of(answer, "token") << '\n';
  return kDone;
}

int CliContext::fail(const CallFailure& failure) const {
  if (json && failure.problem.contains("detail")) {
    err << failure.problem.dump() << '\n';
  } else {
    err << "verger: " << failure.message << '\n';
  }
  return failure.exit_code;
}

}  // namespace verger::cli
