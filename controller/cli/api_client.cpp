#include "controller/cli/api_client.h"

#include <cstdlib>
#include <deque>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <ostream>
#include <set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "controller/cli/bootstrap_token.h"
#include "controller/cli/json_text.h"
#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/private_file.h"
#include "engine/base/random.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/loopback.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/http/tls.h"

namespace verger::cli {
namespace {

using nlohmann::json;

/// Which exit code a problem's stable code means (docs/operations/command-line.md).
int exit_code_of_problem(std::string_view code) {
  for (const std::string_view refused :
       {"cluster_exists",      "wrong_cluster",        "plan_refused",   "stale_plan",
        "run_active",          "wrong_state",          "unauthorized",   "forbidden",
        "policy_invalid",      "changed_meanwhile",    "last_admin",     "token_unknown",
        "token_used",          "token_expired",        "cluster_paused", "other_controller",
        "credentials_refused", "token_exists",         "standby",        "no_fencing",
        "in_progress",         "idempotency_mismatch", "no_agent"}) {
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
  failure.message = text_of(failure.problem, "detail");
  for (const auto& line : failure.problem.value("differences", json::array())) {
    if (line.is_string()) {
      failure.message += "\n  " + line.get<std::string>();
    }
  }
  failure.exit_code = exit_code_of_problem(text_of(failure.problem, "code"));
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

bool is_standby(const CallFailure& failure) {
  return text_of(failure.problem, "code") == "standby";
}

/// Who acts, as a controller says that stands by.
std::optional<http::Endpoint> acting_of(const CallFailure& standby) {
  const auto acting = standby.problem.value("acting", json());
  const auto endpoint = http::parse_endpoint(text_of(acting, "url"), http::kControllerPort);
  return endpoint ? std::optional(*endpoint) : std::nullopt;
}

/// Between two looks whether one of a pair acts.
constexpr std::chrono::milliseconds kBetweenRounds{500};
/// Where another one can be queried.
constexpr std::chrono::milliseconds kProbeDeadline{3'000};

}  // namespace

struct ApiClient::State {
  State(ApiAccess given, std::ostream& to)
      : access(std::move(given)),
        notices(to),
        client(context.get_executor(), {.tls = access.tls, .plain_to_loopback_only = true}) {}
  ApiAccess access;
  std::ostream& notices;
  boost::asio::io_context context{1};
  http::BeastClient client;
  std::optional<http::Endpoint> acting;  ///< the one that answered last
  std::set<std::string> said;            ///< each notice once
  bool answered = true;
  /// Of controllers on this machine that have no token yet, by URL.
  std::map<std::string, std::string> bootstrap_tokens;

  /// Runs one coroutine to its end on this thread.
  template <class T>
  T run(net::awaitable<T> work) {
    auto result = net::co_spawn(context, std::move(work), net::use_future);
    context.restart();
    context.run();
    return result.get();
  }
  /// The one that answered last, then the others.
  [[nodiscard]] std::deque<http::Endpoint> in_turn() const {
    std::deque<http::Endpoint> out(access.controllers.begin(), access.controllers.end());
    if (acting) {
      std::erase(out, *acting);
      out.push_front(*acting);
    }
    return out;
  }
  void say(const std::string& notice) {
    if (said.insert(notice).second) {
      notices << "verger: " << notice << '\n' << std::flush;
    }
  }
};

struct ApiClient::Call {
  std::string method{};
  std::string path{};
  const json* body = nullptr;
  const std::string* content = nullptr;  ///< of a file, in place of `body`
  std::chrono::seconds deadline{};
  std::string idempotency_key{};
  /// Whether it does no more when it comes twice.
  bool repeatable = false;
  /// Of the first time that it was sent without an answer.
  std::optional<CallFailure> unanswered{};

  [[nodiscard]] http::Request request(const ApiAccess& access, const std::string& token) const {
    http::Request out;
    out.method = method;
    out.target = "/api/v1" + path;
    out.headers.set("Accept", "application/json");
    if (!token.empty()) {
      out.headers.set("Authorization", "Bearer " + token);
    }
    if (!access.reason.empty() && method != "GET") {
      out.headers.set("Verger-Reason", http::percent_encode(access.reason));
    }
    if (!idempotency_key.empty()) {
      out.headers.set("Idempotency-Key", idempotency_key);
    }
    if (body != nullptr) {
      out.headers.set("Content-Type", "application/json");
      out.body = body->dump();
    } else if (content != nullptr) {
      out.headers.set("Content-Type", "application/octet-stream");
      out.body = *content;
    }
    return out;
  }
};

struct ApiClient::Round {
  std::optional<http::Response> response{};
  http::Endpoint from{};
  std::optional<CallFailure> standby{};
  std::optional<CallFailure> silence{};
  std::vector<http::Endpoint> standing_by{};
  std::vector<http::Endpoint> silent{};
};

Result<std::string> token_of_environment(std::ostream& warnings) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is not changed
  if (const char* token = std::getenv("VERGER_TOKEN"); token != nullptr && *token != '\0') {
    return std::string(token);
  }
  const char* path = std::getenv("VERGER_TOKEN_FILE");  // NOLINT(concurrency-mt-unsafe): as above
  if (path == nullptr || *path == '\0') {
    return std::string();
  }
  auto token = token_in_file(path, warnings);
  return token ? std::move(token)
               : Error{Errc::kInvalidArgument,
                       fmt::format("VERGER_TOKEN_FILE is {}", token.error().message)};
}

Result<std::string> token_in_file(const std::string& path, std::ostream& warnings) {
  std::ifstream file(path);
  std::string token;
  if (!std::getline(file, token) || token.empty()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: it cannot be read, or its first line is empty", path)};
  }
  if (const auto exposed = exposed_secret(posix_file_system(), path); !exposed.empty()) {
    warnings << "verger: warning: " << exposed << '\n';
  }
  return token;
}

ApiClient::ApiClient(ApiAccess access, std::ostream& notices)
    : state_(std::make_unique<State>(std::move(access), notices)) {}
ApiClient::~ApiClient() = default;

bool ApiClient::answered() const { return state_->answered; }
const std::string& ApiClient::reason() const { return state_->access.reason; }
const http::Endpoint& ApiClient::controller() const {
  return state_->acting ? *state_->acting : state_->access.controllers.front();
}

Result<http::Response> ApiClient::send(const http::Endpoint& controller, const Call& what,
                                       bool one_of_several) {
  if (one_of_several && controller != state_->acting) {
    // A machine that is gone would cost the whole deadline, and a write the doubt.
    http::Request probe;
    probe.target = "/api/v1/health";
    auto alive = state_->run(state_->client.send(controller, std::move(probe), kProbeDeadline));
    if (!alive) {
      return Error{Errc::kUnavailable, alive.error().message};
    }
  }
  const auto ask = [&](const std::string& token, const std::string& nonce) {
    auto request = what.request(state_->access, token);
    if (!nonce.empty()) {
      request.headers.set(kBootstrapNonceHeader, nonce);
    }
    return state_->run(state_->client.send(controller, std::move(request), what.deadline));
  };
  if (!state_->access.token.empty() || !http::is_loopback(controller.host)) {
    return ask(state_->access.token, {});
  }
  // A controller of this machine may have no token yet; what it refuses it has not carried out.
  auto& bootstrap = state_->bootstrap_tokens[controller.url()];
  const auto nonce = system_random().uuid().to_string();
  auto response = ask(bootstrap, nonce);
  if (response) {
    if (auto found = bootstrap_token_for(*response, nonce); found && *found != bootstrap) {
      bootstrap = *std::move(found);
      return ask(bootstrap, {});
    }
  }
  return response;
}

ApiClient::Round ApiClient::ask_in_turn(Call& what) {
  Round round;
  std::set<std::string> asked;
  auto turn = state_->in_turn();
  while (!turn.empty()) {
    const auto controller = std::move(turn.front());
    turn.pop_front();
    if (!asked.insert(controller.url()).second) {
      continue;
    }
    auto response = send(controller, what, asked.size() + turn.size() > 1);
    if (!response) {
      if (controller == state_->acting) {
        state_->acting.reset();
      }
      round.silent.push_back(controller);
      auto silence = failure_of(controller, what.method, response.error());
      if (round.silence) {
        silence.message = round.silence->message + "\n  " + silence.message;
      }
      round.silence = std::move(silence);
      if (response.error().code == Errc::kUnknownOutcome) {
        what.unanswered = what.unanswered ? what.unanswered
                                          : failure_of(controller, what.method, response.error());
        if (!what.repeatable) {
          return round;
        }
      }
      continue;
    }
    auto problem = response->status == 503 ? failure_of(controller, *response) : CallFailure();
    if (!is_standby(problem)) {
      round.response = *std::move(response);
      round.from = controller;
      return round;
    }
    if (const auto other = acting_of(problem); other && (other->tls || !controller.tls)) {
      turn.push_front(*other);
    }
    round.standing_by.push_back(controller);
    round.standby = std::move(problem);
  }
  return round;
}

void ApiClient::say_who_answered(const Round& round) {
  for (const auto& other : round.standing_by) {
    state_->say(fmt::format("{} is on standby; {} is active and received the request", other.url(),
                            round.from.url()));
  }
  for (const auto& other : round.silent) {
    state_->say(fmt::format("{} does not answer; {} is active and received the request",
                            other.url(), round.from.url()));
  }
}

CallFailure ApiClient::why_nobody_answered(const Call& what, Round round) {
  if (what.unanswered) {
    return *what.unanswered;
  }
  if (!round.standby) {
    return *std::move(round.silence);
  }
  if (round.silence) {
    round.standby->message += "\n  " + round.silence->message;
  }
  return *std::move(round.standby);
}

std::expected<json, CallFailure> ApiClient::call(Call what) {
  const auto until = std::chrono::steady_clock::now() + state_->access.retry_for;
  auto round = ask_in_turn(what);
  // One of a pair needs some seconds to take over. Until then nothing is changed.
  while (!round.response && state_->access.controllers.size() > 1 &&
         (!what.unanswered || what.repeatable) && std::chrono::steady_clock::now() < until) {
    state_->say(round.standby
                    ? "no controller is active at the moment; waiting for one of them to take over"
                    : "no controller answers just now; waiting for one of them");
    wait(kBetweenRounds);
    round = ask_in_turn(what);
  }
  state_->answered = round.response.has_value();
  if (!round.response) {
    return std::unexpected(why_nobody_answered(what, std::move(round)));
  }
  say_who_answered(round);
  state_->acting = round.from;
  const auto& response = *round.response;
  if (response.status >= 400) {
    auto failure = failure_of(round.from, response);
    if (what.unanswered && what.method != "GET") {
      // As likely as not it is refused because of what the first request did.
      failure.exit_code = kStillWaiting;
      failure.message =
          fmt::format("{}; sent again, {} says: {}; check its state before repeating the command",
                      what.unanswered->message, round.from.url(), failure.message);
    }
    return std::unexpected(std::move(failure));
  }
  if (response.body.empty()) {
    return json();
  }
  auto parsed = json::parse(response.body, nullptr, false);
  if (parsed.is_discarded()) {
    CallFailure failure;
    failure.message =
        fmt::format("{}: the answer is not JSON; is that a vergerd?", round.from.url());
    return std::unexpected(std::move(failure));
  }
  return parsed;
}

std::expected<json, CallFailure> ApiClient::get(const std::string& path,
                                                std::chrono::seconds deadline) {
  return call({.method = "GET", .path = path, .deadline = deadline, .repeatable = true});
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
  Call what{.method = "POST", .path = path, .body = &body, .deadline = std::chrono::seconds(120)};
  // What touches nothing needs no key. The answer with a secret is kept under none.
  const bool touches_nothing =
      path.ends_with("/plans") || path.ends_with("/validate") || path.ends_with("/diff");
  if (!touches_nothing && !path.ends_with("/tokens")) {
    what.idempotency_key = system_random().uuid().to_string();
  }
  what.repeatable = touches_nothing || !what.idempotency_key.empty();
  return call(std::move(what));
}

std::expected<json, CallFailure> ApiClient::put(const std::string& path, const json& body) {
  return call({.method = "PUT",
               .path = path,
               .body = &body,
               .deadline = std::chrono::seconds(30),
               .repeatable = true});
}

std::expected<json, CallFailure> ApiClient::put_file(const std::string& path,
                                                     const std::string& content) {
  return call({.method = "PUT",
               .path = path,
               .content = &content,
               .deadline = std::chrono::seconds(60),
               .repeatable = true});
}

std::expected<json, CallFailure> ApiClient::patch(const std::string& path, const json& body) {
  return call({.method = "PATCH",
               .path = path,
               .body = &body,
               .deadline = std::chrono::seconds(120),
               .repeatable = true});
}

std::expected<json, CallFailure> ApiClient::remove(const std::string& path) {
  return call(
      {.method = "DELETE", .path = path, .deadline = std::chrono::seconds(30), .repeatable = true});
}

void ApiClient::wait(std::chrono::milliseconds duration) {
  state_->run([](std::chrono::milliseconds time) -> net::awaitable<bool> {
    co_await http::system_timers().sleep_for(time);
    co_return true;
  }(duration));
}

}  // namespace verger::cli
